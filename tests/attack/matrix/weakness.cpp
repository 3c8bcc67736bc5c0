/* SPDX-License-Identifier: MIT */
/* tests/attack/matrix/weakness.cpp - kinds of misuse by their CWE number, in the spirit of NIST's
 * Juliet suite: each row of a table in each of the flows by which its block gets to the misuse.
 *
 * weakness                     prints the cases: CWE, row, flow
 * weakness right BYTES         runs all of them without their misuse
 * weakness CWE ROW FLOW BYTES  runs one with it
 *
 * BYTES is the size of the block, 10 to 262144.
 *
 * Exit status 0: the misuse had its way; 1: it was in vain, as it read nothing of any block's
 * content or the kernel refused it; else the allocator or the kernel ended it. tools/weaknesses.py
 * runs them. */
#include "weakness.hpp"

#include <cstdio>
#include <cstring>
#include <sys/resource.h>

/* A block on its way to the misuse. */
struct passage {
    const weakness *what;
    char *block;
    bool wrong;
};
static passage global;

static bool misuse_in_vain;

static void use(passage one)
{
    one.what->sink(hide(one.block), one.wrong);
    if (one.wrong)
        misuse_in_vain = in_vain;
}

static void direct(const weakness &what, bool wrong)
{
    use({&what, what.source(), wrong});
}

static void function(const weakness &what, bool wrong)
{
    void (*volatile called)(passage) = use;
    called({&what, what.source(), wrong});
}

static void structure(const weakness &what, bool wrong)
{
    passage one = {&what, what.source(), wrong};
    passage *volatile copied = new passage(one);
    use(*copied);
    delete copied;
}

static void loop(const weakness &what, bool wrong)
{
    for (int i = 0; i < 10; i++)
        use({&what, what.source(), wrong && i == 6});
}

static void array(const weakness &what, bool wrong)
{
    char *blocks[10];
    for (char *&block : blocks)
        block = what.source();
    for (int i = 0; i < 10; i++)
        use({&what, blocks[i], wrong && i == 3});
}

static void by_global(const weakness &what, bool wrong)
{
    global = {&what, what.source(), wrong};
    void (*volatile called)() = [] { use(global); };
    called();
}

static void in_a_thread(const weakness &what, bool wrong)
{
    passage one = {&what, what.source(), wrong};
    run_thread(
        [](void *one) -> void * {
            use(*static_cast<passage *>(one));
            return NULL;
        },
        &one);
}

static void from_a_thread(const weakness &what, bool wrong)
{
    passage one = {&what, NULL, wrong};
    run_thread(
        [](void *one) -> void * {
            static_cast<passage *>(one)->block = static_cast<passage *>(one)->what->source();
            return NULL;
        },
        &one);
    use(one);
}

static const struct flow {
    const char *name;
    void (*run)(const weakness &, bool);
} flows[] = {{"direct", direct},
             {"function", function},
             {"structure", structure},
             {"loop", loop},
             {"array", array},
             {"global", by_global},
             {"in_a_thread", in_a_thread},
             {"from_a_thread", from_a_thread}};

/* What is found out late is found out here. */
static void go_on()
{
    static void *kept[2000];
    for (int round = 0; round < 4; round++) {
        for (void *&block : kept)
            block = hide(malloc(bytes));
        for (void *block : kept)
            free(block);
    }
}

template <typename Function> static void each_case(Function act)
{
    for (size_t i = 0; i < weakness_count; i++)
        for (const flow &way : flows)
            act(weaknesses[i], way);
}

int main(int argument_count, char **arguments)
{
    alignas(16) char room[MOST_BYTES];
    rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    begin(argument_count < 2 ? 0 : strtoul(arguments[argument_count - 1], NULL, 10), room);
    if (argument_count < 2)
        each_case([](const weakness &what, const flow &way) {
            printf("%d %s %s\n", what.number, what.name, way.name);
        });
    else if (argument_count < 5)
        each_case([](const weakness &what, const flow &way) {
            way.run(what, false);
            free_settlers();
            printf("%d %s %s\n", what.number, what.name, way.name);
        });
    else
        each_case([arguments](const weakness &what, const flow &way) {
            if (atoi(arguments[1]) != what.number || strcmp(arguments[2], what.name) != 0 ||
                strcmp(arguments[3], way.name) != 0)
                return;
            way.run(what, true);
            if (!misuse_in_vain) // else nothing was harmed
                go_on();
            exit(misuse_in_vain);
        });
}
