/* SPDX-License-Identifier: MIT */
/* bench/workloads/binary_trees.c - trees that are built and felled.
 *
 *   binary_trees [THREADS] [DEPTH] [TREES] [BYTES]
 *
 * Models compilers, parsers and interpreters, which build structures of small nodes and drop them
 * as a whole: each of THREADS threads builds TREES complete binary trees, one after the other, of
 * 2^(DEPTH + 1) - 1 nodes of BYTES bytes, parents first, and frees the nodes of each, children
 * first. One operation is a node, its malloc and its free included; all threads are counted
 * together.
 *
 * Checked at each free: the node's mark, which its children's addresses are part of.
 */
#include "bench.h"
#include "team.h"

#define MOST_THREADS 1024
#define MOST_DEPTH 26

struct node {
    struct node *left;
    struct node *right;
    uint64_t mark;
};

static struct {
    uint64_t thread_count;
    uint64_t depth;
    uint64_t tree_count;
    uint64_t node_bytes;
} plan = {2, 16, 20, 24};

static uint64_t mark_of(const struct node *node)
{
    return bench_mix64((uintptr_t)node->left * 3 ^ (uintptr_t)node->right);
}

static struct node *tree_build(uint64_t depth)
{
    struct node *node = bench_take(plan.node_bytes);
    struct node *left = depth == 0 ? NULL : tree_build(depth - 1);
    struct node *right = depth == 0 ? NULL : tree_build(depth - 1);
    *node = (struct node){.left = left, .right = right};
    node->mark = mark_of(node);
    return node;
}

static void tree_fell(struct node *node)
{
    if (bench_checks() && node->mark != mark_of(node)) {
        bench_fail("a node holds %" PRIx64 " instead of %" PRIx64, node->mark, mark_of(node));
    }
    if (node->left) {
        tree_fell(node->left);
        tree_fell(node->right);
    }
    free(node);
}

static void trees_work(void *argument)
{
    (void)argument; /* all threads do the same */
    for (uint64_t i = 0; i < plan.tree_count; i++) {
        tree_fell(tree_build(plan.depth));
    }
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"THREADS", "threads", &plan.thread_count, 1, MOST_THREADS},
        {"DEPTH", "edges from the root to a leaf", &plan.depth, 0, MOST_DEPTH},
        {"TREES", "trees of each thread", &plan.tree_count, 1, UINT32_MAX},
        {"BYTES", "bytes of a node", &plan.node_bytes, sizeof(struct node), 1u << 20},
    };
    bench_arguments_read(argc, argv, "Trees that are built and felled.", arguments, 4);
    uint64_t elapsed_ns = bench_team_run((uint32_t)plan.thread_count, trees_work, NULL, 0);
    uint64_t tree_nodes = ((uint64_t)2 << plan.depth) - 1;
    bench_report(plan.thread_count * plan.tree_count * tree_nodes, elapsed_ns);
    return 0;
}
