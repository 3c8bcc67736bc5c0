// SPDX-License-Identifier: MIT
// tests/install/consumer/use.cpp - a C++ program as any: threads, containers, a child, and what
// operator new does when memory is out.
#include <cstddef>
#include <cstdio>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace
{

constexpr std::size_t absurd_bytes = std::size_t(1) << 60;
int handler_calls;

void refuse()
{
    ++handler_calls;
    throw std::bad_alloc();
}

void use()
{
    std::map<int, std::string> names;
    for (int i = 0; i < 2000; i++)
        names[i % 300] += std::to_string(i) + std::string(100, 'x');
    struct alignas(256) Wide {
        char bytes[256];
    };
    for (int i = 0; i < 100; i++)
        if (reinterpret_cast<std::size_t>(std::make_unique<Wide>().get()) % 256 != 0)
            _exit(2);
}

void use_in_threads()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back(use);
    for (auto &thread : threads)
        thread.join();
}

// The compiler may not know that this cannot succeed.
std::size_t absurd()
{
    std::size_t volatile bytes = absurd_bytes;
    return bytes;
}

bool throws_bad_alloc()
{
    try {
        void *volatile block = ::operator new(absurd());
        static_cast<void>(block);
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

bool nothrow_survives_a_handler_that_throws()
{
    std::set_new_handler(refuse);
    void *volatile block = ::operator new(absurd(), std::nothrow);
    void *volatile other = ::operator new(absurd(), std::align_val_t(64), std::nothrow);
    std::set_new_handler(nullptr);
    return block == nullptr && other == nullptr && handler_calls == 2;
}

} // namespace

int main()
{
    int status = -1;
    use_in_threads();
    for (int i = 0; i < 10; i++)
        std::vector<char>(1000000, 'x').shrink_to_fit();
    if (!throws_bad_alloc() || !nothrow_survives_a_handler_that_throws())
        return 3;
    pid_t pid = fork();
    if (pid == 0) {
        use_in_threads();
        _exit(0);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 4;
}
