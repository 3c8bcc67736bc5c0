/* SPDX-License-Identifier: MIT */
#include "api/token.h"

/* True: of the long partition. */
static bool is_long(size_t token)
{
    return token > UINT32_MAX ? token >> 63 != 0 : (token & 1) != 0;
}

/* Parameters with a token behind them. */
#define WITH_TOKEN(...) (__VA_ARGS__, size_t token)
#define TOKEN_FUNCTIONS(name, parameters, arguments, ordinary, long, result)                       \
    result hak_token_##name WITH_TOKEN parameters;                                                 \
    result hak_token_0_##name parameters;                                                          \
    result hak_token_1_##name parameters;                                                          \
    result hak_token_##name WITH_TOKEN parameters                                                  \
    {                                                                                              \
        if (is_long(token))                                                                        \
            return long arguments;                                                                 \
        return ordinary arguments;                                                                 \
    }                                                                                              \
    result hak_token_0_##name parameters                                                           \
    {                                                                                              \
        return ordinary arguments;                                                                 \
    }                                                                                              \
    result hak_token_1_##name parameters                                                           \
    {                                                                                              \
        return long arguments;                                                                     \
    }                                                                                              \
    HAK_LIBC_ALIAS(__alloc_token_##name, hak_token_##name)                                         \
    HAK_LIBC_ALIAS(__alloc_token_0_##name, hak_token_0_##name)                                     \
    HAK_LIBC_ALIAS(__alloc_token_1_##name, hak_token_1_##name)
HAK_TOKEN_FUNCTIONS(TOKEN_FUNCTIONS)
