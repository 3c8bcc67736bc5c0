// SPDX-License-Identifier: MIT
// tests/preload/cpp.cpp - a C++ program: containers, strings, threads with thread_local objects,
// exceptions, aligned new, memory resources. If this fails, no C++ program can use hakmem: operator
// new is malloc to it (operators.cpp).
#include "program.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace
{

struct alignas(256) Wide {
    char bytes[300];
};
static_assert(sizeof(Wide) == 512);

void aligned_new_aligns()
{
    for (std::size_t alignment = 1; alignment <= 65536 * 4; alignment *= 2) {
        for (std::size_t bytes : {1, 24, 1000, 70000}) {
            void *block = hidden(::operator new(bytes, std::align_val_t(alignment)));
            CHECK(reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
            std::memset(block, 1, bytes);
            ::operator delete(block, bytes, std::align_val_t(alignment));
            block = hidden(::operator new(bytes, std::align_val_t(alignment), std::nothrow));
            CHECK(reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
            ::operator delete(block, std::align_val_t(alignment));
        }
    }
    std::vector<Wide> wide(20);
    CHECK(reinterpret_cast<std::uintptr_t>(wide.data()) % 256 == 0);
    auto single = std::make_unique<Wide>();
    CHECK(reinterpret_cast<std::uintptr_t>(hidden(single.get())) % 256 == 0);
}

void containers_hold_what_was_put_in()
{
    std::map<std::string, std::vector<int>> table;
    std::unordered_map<int, std::string> names;
    unsigned state = 1;
    for (int i = 0; i < 20000; i++) {
        state = state * 1664525u + 1013904223u;
        std::string key = "key " + std::to_string(state % 3000) + std::string(state % 50, 'x');
        table[key].push_back(i);
        names[i] = key;
        if (i % 5 == 0)
            table.erase(names[i / 2]);
    }
    for (const auto &[key, values] : table)
        for (int value : values)
            CHECK(names.at(value) == key);
    std::string text;
    for (int i = 0; i < 100000; i++)
        text += static_cast<char>('a' + i % 26);
    CHECK(text.size() == 100000 && text[99999] == 'a' + 99999 % 26);
    std::ostringstream stream;
    for (int i = 0; i < 5000; i++)
        stream << i << ' ';
    CHECK(stream.str().size() == 10 * 2 + 90 * 3 + 900 * 4 + 4000 * 5);
}

// std::stable_sort takes its buffer by nothrow new and gives it back by delete.
void a_stable_sort_gets_its_buffer()
{
    for (std::size_t count : {10u, 1000u, 200000u}) {
        std::vector<unsigned> numbers(count);
        for (std::size_t i = 0; i < count; i++)
            numbers[i] = static_cast<unsigned>(i * 7919 % 1009);
        std::stable_sort(numbers.begin(), numbers.end());
        CHECK(std::is_sorted(numbers.begin(), numbers.end()));
    }
}

void exceptions_pass_and_carry_their_text()
{
    unsigned caught_count = 0;
    std::function<void(int)> descend = [&](int depth) {
        std::vector<std::string> held(5, std::string(100, 'x'));
        if (depth == 0)
            throw std::runtime_error("at the bottom " + std::string(200, 'y'));
        try {
            descend(depth - 1);
        } catch (...) {
            caught_count++;
            std::throw_with_nested(std::logic_error("at " + std::to_string(depth)));
        }
    };
    for (int i = 0; i < 200; i++) {
        try {
            descend(20);
            CHECK(false);
        } catch (const std::logic_error &error) {
            CHECK(std::string(error.what()) == "at 20");
        }
    }
    CHECK(caught_count == 200 * 20);
}

// Destroyed late in a thread's end; allocates and frees while it is.
struct Late {
    std::vector<std::string> words = std::vector<std::string>(20, std::string(60, 'w'));
    static std::atomic<int> destroyed_count;
    ~Late()
    {
        for (auto &word : words)
            CHECK(word == std::string(60, 'w'));
        std::map<int, std::string> more;
        for (int i = 0; i < 100; i++)
            more[i] = std::string(static_cast<std::size_t>(i), 'm');
        destroyed_count++;
    }
};
std::atomic<int> Late::destroyed_count;
thread_local Late late;

void threads_exchange_objects_and_end()
{
    std::mutex mutex;
    std::vector<std::shared_ptr<std::string>> shared;
    for (int round = 0; round < 20; round++) {
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; i++) {
            threads.emplace_back([&, i] {
                CHECK(late.words.size() == 20);
                for (int j = 0; j < 500; j++) {
                    auto mine = std::make_shared<std::string>(static_cast<std::size_t>(j), 'a' + i);
                    std::lock_guard<std::mutex> guard(mutex);
                    if (shared.size() > 1000)
                        shared.erase(shared.begin(), shared.begin() + 500);
                    shared.push_back(mine);
                }
            });
        }
        for (auto &thread : threads)
            thread.join();
    }
    CHECK(Late::destroyed_count == 160);
    for (const auto &text : shared)
        CHECK(std::all_of(text->begin(), text->end(), [&](char c) { return c == text->front(); }));
}

void an_exception_travels_between_threads()
{
    for (int i = 0; i < 100; i++) {
        auto future = std::async(std::launch::async, [i]() -> int {
            throw std::out_of_range("number " + std::to_string(i) + std::string(100, '.'));
        });
        std::string text;
        try {
            future.get();
        } catch (const std::out_of_range &error) {
            text = error.what();
        }
        CHECK(text == "number " + std::to_string(i) + std::string(100, '.'));
    }
}

void memory_resources_work()
{
    std::pmr::unsynchronized_pool_resource pool;
    std::pmr::vector<std::pmr::string> words(&pool);
    for (int i = 0; i < 3000; i++)
        words.emplace_back(static_cast<std::size_t>(i % 300), 'p');
    for (int i = 0; i < 3000; i++)
        CHECK(words[static_cast<std::size_t>(i)].size() == static_cast<std::size_t>(i % 300));
}

// Before main and after it.
struct Global {
    std::map<std::string, std::string> table;
    Global()
    {
        for (int i = 0; i < 500; i++)
            table[std::to_string(i)] = std::string(static_cast<std::size_t>(i), 'g');
    }
    ~Global()
    {
        for (int i = 0; i < 500; i++)
            if (table[std::to_string(i)] != std::string(static_cast<std::size_t>(i), 'g'))
                _exit(1);
    }
} global;

} // namespace

int main()
{
    alarm(100);
    aligned_new_aligns();
    containers_hold_what_was_put_in();
    a_stable_sort_gets_its_buffer();
    exceptions_pass_and_carry_their_text();
    threads_exchange_objects_and_end();
    an_exception_travels_between_threads();
    memory_resources_work();
    CHECK(global.table.size() == 500);
    return check_end();
}
