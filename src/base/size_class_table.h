/* SPDX-License-Identifier: MIT */
/* base/size_class_table.h - the size classes, for C and for assembly.
 *
 * Owns        HAK_SIZE_CLASSES, and how tags and the hot path name the bin of a class.
 * Invariants  plain macros: no declaration, no suffix that only C knows.
 * Tests       tests/unit/slab/size_class_test.c
 */
#ifndef HAK_BASE_SIZE_CLASS_TABLE_H
#define HAK_BASE_SIZE_CLASS_TABLE_H

/* The scaled form of a class that tags and the hot path use: a quarter of the offset of its bin.
 * Bin 0 takes nothing. */
#define HAK_BIN_SCALE 2
#define HAK_BIN_OF_CLASS(class_index) (((class_index) + 1) * HAK_BIN_SCALE)

/* The rule. X(class index, largest request of the class below, block bytes). */
#define HAK_CLASS_DOUBLING(X, first, low)                                                          \
    X(first + 0, (low), (low) + (low) / 8 * 1)                                                     \
    X(first + 1, (low) + (low) / 8 * 1, (low) + (low) / 8 * 2)                                     \
    X(first + 2, (low) + (low) / 8 * 2, (low) + (low) / 8 * 3)                                     \
    X(first + 3, (low) + (low) / 8 * 3, (low) + (low) / 8 * 4)                                     \
    X(first + 4, (low) + (low) / 8 * 4, (low) + (low) / 8 * 5)                                     \
    X(first + 5, (low) + (low) / 8 * 5, (low) + (low) / 8 * 6)                                     \
    X(first + 6, (low) + (low) / 8 * 6, (low) + (low) / 8 * 7)                                     \
    X(first + 7, (low) + (low) / 8 * 7, (low) * 2)

/* Four a doubling, each dividing a slab of 8 * low into 7, 6, 5 or 4 blocks with hardly a tail: few
 * classes and small slabs let memory move between them, which matters more than rounding here.
 * Multiples of 64 serve requests aligned to a cache line without going to the next doubling. */
#define HAK_CLASS_QUARTERS(X, first, low, below)                                                   \
    X(first + 0, (below), (low) * 8 / 7 / 64 * 64)                                                 \
    X(first + 1, (low) * 8 / 7 / 64 * 64, (low) * 8 / 6 / 64 * 64)                                 \
    X(first + 2, (low) * 8 / 6 / 64 * 64, (low) * 8 / 5 / 64 * 64)                                 \
    X(first + 3, (low) * 8 / 5 / 64 * 64, (low) * 2)

/* And one for a power of two with a header, as of a cache of pages: 15 of it divide a slab that 16
 * without a header would fill. */
#define HAK_CLASS_WITH_HEADER(low) ((low) * 16 / 15 / 16 * 16)
#define HAK_CLASS_HEADER_AND_QUARTERS(X, first, low)                                               \
    X(first + 0, (low), HAK_CLASS_WITH_HEADER(low))                                                \
    HAK_CLASS_QUARTERS(X, first + 1, low, HAK_CLASS_WITH_HEADER(low))

/* Up to 4 KiB. */
#define HAK_SIZE_CLASSES_EVEN(X)                                                                   \
    X(1, 8, 16)                                                                                    \
    X(2, 16, 32)                                                                                   \
    X(3, 32, 48)                                                                                   \
    X(4, 48, 64)                                                                                   \
    X(5, 64, 80)                                                                                   \
    X(6, 80, 96)                                                                                   \
    X(7, 96, 112)                                                                                  \
    X(8, 112, 128)                                                                                 \
    HAK_CLASS_DOUBLING(X, 9, 128)                                                                  \
    HAK_CLASS_DOUBLING(X, 17, 256)                                                                 \
    HAK_CLASS_DOUBLING(X, 25, 512)                                                                 \
    HAK_CLASS_DOUBLING(X, 33, 1024)                                                                \
    HAK_CLASS_DOUBLING(X, 41, 2048)

/* Classes that the hot path finds in a table by bytes or eighths of them. */
#define HAK_SIZE_CLASSES_HOT(X)                                                                    \
    HAK_SIZE_CLASSES_EVEN(X)                                                                       \
    HAK_CLASS_HEADER_AND_QUARTERS(X, 49, 4096)                                                     \
    HAK_CLASS_HEADER_AND_QUARTERS(X, 54, 8192)                                                     \
    HAK_CLASS_HEADER_AND_QUARTERS(X, 59, 16384)

#define HAK_SIZE_CLASSES_LARGEST(X)                                                                \
    HAK_CLASS_QUARTERS(X, 64, 32768, 32768)                                                        \
    HAK_CLASS_QUARTERS(X, 68, 65536, 65536)

/* All classes but the first, which is 8 bytes. */
#define HAK_SIZE_CLASSES(X)                                                                        \
    HAK_SIZE_CLASSES_HOT(X)                                                                        \
    HAK_SIZE_CLASSES_LARGEST(X)

/* Those above 4 KiB that are multiples of 64, as only the last of the three with a header is, each
 * from the next smaller one of them on: the hot path finds them in a table by lines of 64 bytes. */
#define HAK_SIZE_CLASSES_LINES(X)                                                                  \
    HAK_CLASS_QUARTERS(X, 50, 4096, 4096)                                                          \
    HAK_CLASS_QUARTERS(X, 55, 8192, 8192)                                                          \
    HAK_CLASS_HEADER_AND_QUARTERS(X, 59, 16384)                                                    \
    HAK_SIZE_CLASSES_LARGEST(X)

#endif
