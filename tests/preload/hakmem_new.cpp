// SPDX-License-Identifier: MIT
// tests/preload/hakmem_new.cpp - containers on hakmem's allocator, resources and heaps, and
// bad_alloc where there is no memory. If this fails, the C++ header does not work.
#define HAKMEM_WEAK
#include "program.hpp"

#include <hakmem/hakmem_new.hpp>

#include <cstdint>
#include <cstdio>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace
{

template <class T, class... Arguments> bool throws(Arguments... body)
{
    try {
        (body(), ...);
    } catch (const T &) {
        return true;
    }
    return false;
}

struct alignas(256) wide {
    char bytes[256];
};

constexpr std::size_t absurd_bytes = PTRDIFF_MAX / 2;

void containers_use_the_allocator()
{
    std::vector<int, hakmem::allocator<int>> numbers;
    for (int i = 0; i < 100000; i++)
        numbers.push_back(i);
    CHECK(hakmem_is_owned(numbers.data()) == 1);
    CHECK(numbers[99999] == 99999);

    using pair = std::pair<const int, std::string>;
    std::map<int, std::string, std::less<int>, hakmem::allocator<pair>> ordered;
    std::unordered_map<int, std::string, std::hash<int>, std::equal_to<int>,
                       hakmem::allocator<pair>>
        hashed;
    std::list<int, hakmem::allocator<int>> list(50, 7);
    for (int i = 0; i < 2000; i++)
        ordered[i] = hashed[i] = std::string(static_cast<std::size_t>(i % 50), 'x');
    auto copy = ordered;
    ordered.clear();
    CHECK(copy.size() == 2000 && copy[1999].size() == 49 && hashed[49].size() == 49);
    CHECK(list.back() == 7);

    std::vector<wide, hakmem::allocator<wide>> wides(10);
    CHECK(reinterpret_cast<std::uintptr_t>(wides.data()) % 256 == 0);
    auto shared = std::allocate_shared<std::string>(hakmem::allocator<char>(), 100, 's');
    CHECK(shared->size() == 100);
    CHECK(hakmem::allocator<int>() == hakmem::allocator<wide>());
}

void the_process_resource_is_one()
{
    hakmem::memory_resource other;
    CHECK(*hakmem::process_resource() == other);
    CHECK(!(*hakmem::process_resource() == *std::pmr::new_delete_resource()));
    std::pmr::vector<std::pmr::string> words(hakmem::process_resource());
    for (int i = 0; i < 1000; i++)
        words.emplace_back("a word that is too long for the small string optimisation");
    CHECK(hakmem_is_owned(words[500].data()) == 1);
    void *block = other.allocate(10, 4096);
    CHECK(reinterpret_cast<std::uintptr_t>(block) % 4096 == 0);
    hakmem::process_resource()->deallocate(block, 10, 4096);
}

void a_heap_frees_what_nobody_freed()
{
    hakmem_heap *handle;
    {
        hakmem::heap heap;
        handle = heap.get();
        for (std::size_t bytes = 1; bytes < 1000000; bytes *= 3)
            CHECK(hakmem_heap_of(heap.allocate(bytes)) == handle);
        CHECK(heap.stats().live_block_count == 13);
        void *block = heap.allocate(100, 64);
        CHECK(reinterpret_cast<std::uintptr_t>(block) % 64 == 0);
        heap.deallocate(block);
        hakmem::heap moved(std::move(heap));
        CHECK(heap.get() == nullptr && moved.get() == handle);
        heap = std::move(moved);
        CHECK(heap.stats().live_block_count == 13);
        heap.trim();
    }
    hakmem::heap other;
    other.reset(hakmem_heap_new());
    hakmem_heap *released = other.release();
    CHECK(other.get() == nullptr && released != nullptr);
    hakmem::heap again(released);
    CHECK(again.allocate(10) != nullptr);
}

void a_request_has_its_own_arena()
{
    hakmem::heap_resource arena;
    hakmem_heap *heap = arena.get().get();
    {
        std::pmr::map<int, std::pmr::string> map(&arena);
        std::pmr::unordered_map<int, std::pmr::vector<int>> lists(&arena);
        std::pmr::set<std::pmr::string> set(&arena);
        for (int i = 0; i < 3000; i++) {
            map.emplace(i, "a value that is too long for the small string optimisation");
            lists[i % 100].push_back(i);
            set.emplace(std::to_string(i) + " and some more so that it is not in the object");
        }
        CHECK(hakmem_heap_of(map[17].data()) == heap);
        CHECK(hakmem_heap_of(lists[17].data()) == heap);
        CHECK(set.size() == 3000 && lists[17].size() == 30);
    }
    CHECK(arena.get().stats().live_block_count == 0);

    auto *leaked = arena.allocate(500);
    CHECK(leaked != nullptr && arena.get().stats().live_block_count == 1);
    arena.release();
    CHECK(arena.get().stats().live_block_count == 0);
    CHECK(arena == arena);
    hakmem::heap_resource second;
    CHECK(!(arena == second));
}

void threads_share_an_arena()
{
    hakmem::heap_resource arena;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&arena] {
            std::pmr::vector<std::pmr::string> words(&arena);
            for (int word = 0; word < 2000; word++)
                words.emplace_back(static_cast<std::size_t>(word % 300), 'w');
            for (int word = 0; word < 2000; word++)
                CHECK(words[static_cast<std::size_t>(word)].size() ==
                      static_cast<std::size_t>(word % 300));
        });
    for (auto &thread : threads)
        thread.join();
    CHECK(arena.get().stats().live_block_count == 0);
}

void out_of_memory_is_bad_alloc()
{
    hakmem::heap heap;
    hakmem::heap_resource arena;
    hakmem::allocator<wide> wides;
    CHECK(throws<std::bad_alloc>([&] { (void)heap.allocate(absurd_bytes); }));
    CHECK(throws<std::bad_alloc>([&] { (void)heap.allocate(absurd_bytes, 4096); }));
    CHECK(throws<std::bad_alloc>([&] { (void)arena.allocate(absurd_bytes); }));
    CHECK(throws<std::bad_alloc>([&] { (void)hakmem::allocator<char>().allocate(absurd_bytes); }));
    CHECK(throws<std::bad_array_new_length>([&] { (void)wides.allocate(SIZE_MAX / 16); }));
    std::pmr::vector<int> numbers(10, 5, &arena);
    CHECK(throws<std::bad_alloc>([&] { numbers.reserve(numbers.max_size() / 4); }));
    CHECK(numbers.size() == 10 && numbers[9] == 5);
}

void an_exception_that_passes_frees_what_it_should()
{
    hakmem::heap_resource arena;
    CHECK(throws<std::runtime_error>([&] {
        std::pmr::vector<std::pmr::string> words(&arena);
        words.emplace_back(200, 'w');
        throw std::runtime_error(std::string(100, 'e'));
    }));
    CHECK(arena.get().stats().live_block_count == 0);
}

} // namespace

int main()
{
    CHECK(hakmem_version != nullptr);
    containers_use_the_allocator();
    the_process_resource_is_one();
    a_heap_frees_what_nobody_freed();
    a_request_has_its_own_arena();
    threads_share_an_arena();
    out_of_memory_is_bad_alloc();
    an_exception_that_passes_frees_what_it_should();
    return check_end();
}
