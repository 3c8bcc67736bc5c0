/* SPDX-License-Identifier: MIT */
/* tests/install/aid/tls.c - a library with thread-local storage of TLS_BYTES in the model TLS. */
extern __thread char tls_bytes[TLS_BYTES] __attribute__((tls_model(TLS)));
__thread char tls_bytes[TLS_BYTES];

char *tls_touch(void)
{
    tls_bytes[0]++;
    return tls_bytes;
}
