// SPDX-License-Identifier: MIT
// profiler_sites WORKLOAD SEED [FILE]: 64 call sites that hold from 64 KiB to 16 MiB each, in one
// of eight ways, for profilers that sample. Prints what is true, a line a site: "NUMBER REQUESTED
// USABLE SAMPLES", the live bytes as asked for and as served, and how many of them one sample in
// 4,096 bytes finds in the mean. The functions are site<0> to site<63>; with gperftools' library
// its samples of what lives go to FILE.
#include "profiler_samples.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace
{

constexpr int site_count = 64;
constexpr double rate = 4096, least_bytes = 65536, most_bytes = 16777216;

enum class way { plain, zero, aligned, grown };

struct block {
    void *start;
    std::size_t bytes;
    int site;
};

struct truth {
    double requested = 0, usable = 0, samples = 0;
};

std::array<truth, site_count> truths;
way allocate_by = way::plain;

void *grow(std::size_t bytes)
{
    void *start = nullptr;
    for (std::size_t so_far = 24; so_far < bytes; so_far = so_far * 3 / 2)
        start = std::realloc(start, so_far);
    return std::realloc(start, bytes);
}

template <int number>
__attribute__((noinline)) void *site(std::size_t bytes)
{
    void *start = allocate_by == way::plain  ? std::malloc(bytes)
                  : allocate_by == way::zero ? std::calloc(1, bytes)
                  : allocate_by == way::grown
                      ? grow(bytes)
                      : std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    asm volatile("" : "+r"(start) : "i"(number) : "memory"); // no two are folded into one
    return start;
}

__attribute__((noinline)) void pass(std::size_t bytes)
{
    void *volatile start = std::malloc(bytes);
    std::free(start);
    asm volatile("");
}

template <int... numbers>
constexpr auto table_of(std::integer_sequence<int, numbers...>)
{
    return std::array<void *(*)(std::size_t), site_count>{&site<numbers>...};
}
constexpr auto sites = table_of(std::make_integer_sequence<int, site_count>());

void count(const block &of)
{
    truth &to = truths[static_cast<std::size_t>(of.site)];
    to.requested += static_cast<double>(of.bytes);
    to.usable += static_cast<double>(malloc_usable_size(of.start));
    to.samples -= std::expm1(-static_cast<double>(of.bytes) / rate);
}

/* What one thread holds. */
class holder
{
  public:
    explicit holder(std::uint64_t seed) : random(seed) { blocks.reserve(1 << 20); }

    std::size_t below(std::size_t most) { return random() % most; }

    std::size_t any_size(double least, double most)
    {
        double part = static_cast<double>(random() >> 11) / 9007199254740992.0;
        return static_cast<std::size_t>(least * std::pow(most / least, part));
    }

    void keep(int number, std::size_t bytes)
    {
        bytes = allocate_by == way::aligned ? (bytes + 63) / 64 * 64 : bytes;
        void *start = sites[static_cast<std::size_t>(number)](bytes);
        std::memset(start, 1, bytes < 64 ? bytes : 64);
        blocks.push_back({start, bytes, number});
    }

    void drop_any()
    {
        std::size_t index = below(blocks.size());
        std::free(blocks[index].start);
        blocks[index] = blocks.back();
        blocks.pop_back();
    }

    std::vector<block> blocks;
    std::mt19937_64 random;
};

double goal_of(int number, double share)
{
    double step = std::pow(most_bytes / least_bytes, 1.0 / (site_count - 1));
    return share * least_bytes * std::pow(step, number);
}

/* Fills all sites to a share of their goals, in turns; `size` says of which size the next is. */
template <class size_of>
void fill(holder &to, double share, size_of size)
{
    std::array<double, site_count> held{};
    for (const block &of : to.blocks)
        held[static_cast<std::size_t>(of.site)] += static_cast<double>(of.bytes);
    std::vector<int> open;
    for (int number = 0; number < site_count; number++)
        open.push_back(number);
    while (!open.empty()) {
        std::size_t index = to.below(open.size());
        int number = open[index];
        std::size_t bytes = size(number);
        to.keep(number, bytes);
        held[static_cast<std::size_t>(number)] += static_cast<double>(bytes);
        if (held[static_cast<std::size_t>(number)] >= goal_of(number, share)) {
            open[index] = open.back();
            open.pop_back();
        }
    }
}

void one_size(holder &to)
{
    fill(to, 1, [](int number) { return std::size_t{16} + static_cast<std::size_t>(number) * 61; });
}

void any_size(holder &to)
{
    fill(to, 1, [&to](int) { return to.any_size(8, 65536); });
}

/* A hundred pairs for each block that the largest site keeps, of the same size. */
void pairs(holder &to)
{
    fill(to, 1, [](int number) {
        for (int i = 0; number == site_count - 1 && i < 100; i++)
            pass(200);
        return std::size_t{200};
    });
}

void churn(holder &to)
{
    fill(to, 1, [&to](int) { return to.any_size(16, 8192); });
    for (int i = 0; i < 3; i++) {
        for (std::size_t left = to.blocks.size() / 2; left > 0; left--)
            to.drop_any();
        fill(to, 1, [&to](int) { return to.any_size(16, 8192); });
    }
}

/* Four threads, each of which frees half of what another holds. */
void threads(holder &to)
{
    std::vector<holder> holders;
    for (std::uint64_t i = 0; i < 4; i++)
        holders.emplace_back(to.random());
    auto all = [&holders](auto body) {
        std::vector<std::thread> running;
        for (std::size_t i = 0; i < 4; i++)
            running.emplace_back([&holders, body, i] { body(holders[i], holders[(i + 1) % 4]); });
        for (std::thread &one : running)
            one.join();
    };
    auto take = [](holder &mine, holder &) {
        fill(mine, 0.25, [&mine](int) { return mine.any_size(16, 4096); });
    };
    all(take);
    all([](holder &, holder &other) {
        for (std::size_t left = other.blocks.size() / 2; left > 0; left--)
            other.drop_any();
    });
    all(take);
    for (const holder &one : holders)
        to.blocks.insert(to.blocks.end(), one.blocks.begin(), one.blocks.end());
}

void grown(holder &to)
{
    allocate_by = way::grown;
    fill(to, 1, [&to](int) { return to.any_size(24, 65536); });
}

void large(holder &to)
{
    allocate_by = way::zero;
    fill(to, 0.5, [&to](int) { return to.any_size(16384, 1048576); });
    allocate_by = way::aligned;
    fill(to, 1, [&to](int) { return to.any_size(1024, 131072); });
}

/* Much is freed, and others come in its place. */
void phases(holder &to)
{
    for (int i = 0; i < 3; i++) {
        fill(to, 1, [&to](int) { return to.any_size(16, 2048); });
        for (std::size_t left = to.blocks.size() / 10 * 7; left > 0; left--)
            to.drop_any();
    }
    fill(to, 0.5, [&to](int number) { return to.any_size(16, number % 2 == 0 ? 256 : 16384); });
}

const struct {
    const char *name;
    void (*run)(holder &to);
} workloads[] = {{"one_size", one_size}, {"any_size", any_size}, {"pairs", pairs},
                 {"churn", churn},       {"threads", threads},   {"grown", grown},
                 {"large", large},       {"phases", phases}};

} // namespace

int main(int argument_count, char **arguments)
{
    holder to(argument_count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1);
    for (const auto &workload : workloads)
        if (argument_count > 1 && std::strcmp(workload.name, arguments[1]) == 0)
            workload.run(to);
    if (argument_count > 3)
        write_samples_of_tcmalloc(arguments[3]);
    for (const block &of : to.blocks)
        count(of);
    for (int number = 0; number < site_count; number++) {
        const truth &of = truths[static_cast<std::size_t>(number)];
        std::printf("%d %.0f %.0f %.1f\n", number, of.requested, of.usable, of.samples);
    }
    return to.blocks.empty();
}
