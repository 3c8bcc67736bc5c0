/* SPDX-License-Identifier: MIT */
/* hakmem/hakmem_new.hpp - hakmem for C++17: an allocator, memory resources, heaps that end with
 * their scope.
 *
 * operator new and delete are hakmem's anyway when the library is linked or preloaded. This header
 * is for containers that should use it explicitly, and for heaps: all memory of a request in one
 * set that is freed at once.
 *
 *     hakmem::heap_resource arena;
 *     std::pmr::vector<std::pmr::string> words(&arena);   // freed with the arena, if not before
 *
 * Errors      a request that fails throws std::bad_alloc, or std::bad_array_new_length for an
 *             overflowing size; without exceptions it calls abort().
 * Threads     allocators, resources and heaps may be used by any number of threads at once; moving
 *             and destroying an object is for one thread alone.
 */
#ifndef HAKMEM_HAKMEM_NEW_HPP
#define HAKMEM_HAKMEM_NEW_HPP

#include <hakmem/hakmem.h>

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory_resource>
#include <new>
#include <type_traits>
#include <utility>

namespace hakmem
{

namespace detail
{

/* The alignment of every block, whatever its size. */
inline constexpr std::size_t least_alignment = 8;
inline constexpr std::size_t ordinary_alignment = 16;

[[noreturn]] inline void fail()
{
#if defined(__cpp_exceptions)
    throw std::bad_alloc();
#else
    std::abort();
#endif
}

[[noreturn]] inline void fail_length()
{
#if defined(__cpp_exceptions)
    throw std::bad_array_new_length();
#else
    std::abort();
#endif
}

/* True when a block of `bytes` has the alignment by default. */
constexpr bool is_ordinary(std::size_t bytes, std::size_t alignment)
{
    return alignment <= (bytes > least_alignment ? ordinary_alignment : least_alignment);
}

inline void *allocate(std::size_t bytes, std::size_t alignment)
{
    void *block = is_ordinary(bytes, alignment) ? hakmem_malloc(bytes)
                                                : hakmem_aligned_alloc(alignment, bytes);
    if (block == nullptr)
        fail();
    return block;
}

/* As it was allocated: an aligned block is no other's (C23 7.24.3.4). */
inline void deallocate(void *block, std::size_t bytes, std::size_t alignment) noexcept
{
    if (is_ordinary(bytes, alignment))
        hakmem_free_sized(block, bytes);
    else
        hakmem_free_aligned_sized(block, alignment, bytes);
}

} // namespace detail

/* The process's memory as an allocator of the standard library; all are equal. */
template <class T> class allocator
{
  public:
    using value_type = T;
    using is_always_equal = std::true_type;
    using propagate_on_container_move_assignment = std::true_type;

    constexpr allocator() noexcept = default;
    template <class U> constexpr allocator(const allocator<U> &) noexcept
    {
    }

    [[nodiscard]] T *allocate(std::size_t count)
    {
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
            detail::fail_length();
        return static_cast<T *>(detail::allocate(count * sizeof(T), alignof(T)));
    }

    void deallocate(T *block, std::size_t count) noexcept
    {
        detail::deallocate(block, count * sizeof(T), alignof(T));
    }
};

template <class T, class U>
constexpr bool operator==(const allocator<T> &, const allocator<U> &) noexcept
{
    return true;
}

template <class T, class U>
constexpr bool operator!=(const allocator<T> &, const allocator<U> &) noexcept
{
    return false;
}

/* The process's memory as a memory resource; hakmem::process_resource() is the one there is. */
class memory_resource final : public std::pmr::memory_resource
{
    void *do_allocate(std::size_t bytes, std::size_t alignment) override
    {
        return detail::allocate(bytes, alignment);
    }

    void do_deallocate(void *block, std::size_t bytes, std::size_t alignment) override
    {
        detail::deallocate(block, bytes, alignment);
    }

    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
#if defined(__cpp_rtti)
        return dynamic_cast<const memory_resource *>(&other) != nullptr;
#else
        return this == &other;
#endif
    }
};

/* Never destroyed: statics may use it in their destructors. */
inline memory_resource *process_resource() noexcept
{
    alignas(memory_resource) static unsigned char storage[sizeof(memory_resource)];
    static memory_resource *resource = ::new (static_cast<void *>(storage)) memory_resource;
    return resource;
}

/* A heap that is destroyed, with all its blocks, at the end of its scope. */
class heap
{
  public:
    heap() : handle_(hakmem_heap_new())
    {
        if (handle_ == nullptr)
            detail::fail();
    }

    /* Takes over a heap of the C API. */
    explicit heap(hakmem_heap *handle) noexcept : handle_(handle)
    {
    }

    heap(heap &&other) noexcept : handle_(std::exchange(other.handle_, nullptr))
    {
    }

    heap &operator=(heap &&other) noexcept
    {
        if (this != &other)
            reset(std::exchange(other.handle_, nullptr));
        return *this;
    }

    heap(const heap &) = delete;
    heap &operator=(const heap &) = delete;

    ~heap()
    {
        hakmem_heap_destroy(handle_);
    }

    [[nodiscard]] void *allocate(std::size_t bytes, std::size_t alignment = detail::least_alignment)
    {
        void *block = detail::is_ordinary(bytes, alignment)
                          ? hakmem_heap_malloc(handle_, bytes)
                          : hakmem_heap_aligned_alloc(handle_, alignment, bytes);
        if (block == nullptr)
            detail::fail();
        return block;
    }

    void deallocate(void *block) noexcept
    {
        hakmem_heap_free(handle_, block);
    }

    void trim() noexcept
    {
        hakmem_heap_trim(handle_);
    }

    hakmem_heap_stats stats() const noexcept
    {
        hakmem_heap_stats result;
        hakmem_heap_stats_get(handle_, &result, sizeof result);
        return result;
    }

    /* Destroys the heap and everything in it, and goes on with another one. */
    void reset(hakmem_heap *handle = nullptr) noexcept
    {
        hakmem_heap_destroy(std::exchange(handle_, handle));
    }

    /* Hands the heap to the caller, who destroys it. */
    [[nodiscard]] hakmem_heap *release() noexcept
    {
        return std::exchange(handle_, nullptr);
    }

    hakmem_heap *get() const noexcept
    {
        return handle_;
    }

  private:
    hakmem_heap *handle_; /* nullptr: moved from, released or reset */
};

/* A memory resource with a heap of its own. What was not deallocated is freed with it, so objects
 * in it whose destructors only free memory need not be destroyed. */
class heap_resource final : public std::pmr::memory_resource
{
  public:
    heap_resource() = default;

    explicit heap_resource(heap &&from) noexcept : heap_(std::move(from))
    {
    }

    heap_resource(const heap_resource &) = delete;
    heap_resource &operator=(const heap_resource &) = delete;

    /* Frees everything at once; the resource can be used further. */
    void release()
    {
        heap_ = heap();
    }

    heap &get() noexcept
    {
        return heap_;
    }

  private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override
    {
        return heap_.allocate(bytes, alignment);
    }

    void do_deallocate(void *block, std::size_t, std::size_t) override
    {
        heap_.deallocate(block);
    }

    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
        return this == &other;
    }

    heap heap_;
};

} // namespace hakmem

#endif
