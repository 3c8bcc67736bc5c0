/* SPDX-License-Identifier: MIT */
/* tests/fuzz/conf_fuzz.c - options from any text: a file, HAKMEM_CONF, variables, the API. What is
 * accepted is in range and reads back as what sets it again; what is not changes nothing. */
#include "conf/conf.h"
#include "fuzz.h"
#include "hakmem/hakmem.h"

#include <sys/mman.h>

#define TEXT_BYTES 600u

extern char **environ;

struct row {
    const char *name;
    int64_t least;
    int64_t most;
};

static const struct row rows[CONF_COUNT] = {
#define X(name, kind, initial, least, most, choices, meaning)                                      \
    {#name, (int64_t)(least), (int64_t)(most)},
    HAK_CONF_TABLE(X)
#undef X
};

static struct conf before;

/* The next piece of the input, as a text on the heap of its own, so that reading behind its end is
 * seen. */
static char *input_text(struct input *input, size_t bytes)
{
    size_t left = (size_t)(input->end - input->next);
    bytes = bytes < left ? bytes : left;
    char *text = malloc(bytes + 1);
    memcpy(text, input->next, bytes);
    text[bytes] = '\0';
    input->next += bytes;
    return text;
}

static void options_check(void)
{
    for (int i = 0; i < CONF_COUNT; i++) {
        char value[HAK_CONF_TEXT_BYTES + 1];
        CHECK(hak_conf.number[i] >= rows[i].least && hak_conf.number[i] <= rows[i].most);
        CHECK(hak_conf_read((enum conf_option)i, value, sizeof value));
        int64_t number = hak_conf.number[i];
        CHECK(
            hak_conf_set(rows[i].name, strlen(rows[i].name), value, strlen(value), CONF_VARIABLE));
        CHECK_EQ(hak_conf.number[i], number);
    }
}

static void set_one(struct input *input)
{
    size_t name_bytes = input_byte(input) % 40;
    char *name = input_text(input, name_bytes);
    char *value = input_text(input, input_byte(input) + 40);
    before = hak_conf;
    if (!hak_conf_set(name, strlen(name), value, strlen(value), CONF_PACKED))
        CHECK_EQ(memcmp(&before, &hak_conf, sizeof hak_conf), 0);
    else
        CHECK(hak_conf_find(name) != CONF_COUNT);
    free(name);
    free(value);
}

static void set_from_environment(struct input *input)
{
    char *text = input_text(input, TEXT_BYTES);
    char packed[TEXT_BYTES + 16] = "HAKMEM_CONF=";
    char variable[TEXT_BYTES + 16] = "HAKMEM_";
    size_t half = strlen(text) / 2;
    memcpy(packed + strlen(packed), text, half);
    strcat(variable, text + half);
    char *variables[] = {packed, variable, NULL};
    char **old = environ;
    /* These are meant to end the process, or to print. */
    if (strncmp(variable, "HAKMEM_ABORT_CONF", 17) != 0 && strchr(text, '=') != NULL) {
        environ = variables;
        hak_conf_start();
        environ = old;
    }
    free(text);
}

static void set_from_file(struct input *input)
{
    char path[64];
    int file = memfd_create("conf", MFD_CLOEXEC);
    CHECK(file >= 0);
    size_t bytes = (size_t)(input->end - input->next);
    CHECK_EQ(write(file, input->next, bytes), bytes);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    hak_conf_read_file(path);
    hak_conf_imply();
    close(file);
}

static void use_api(struct input *input)
{
    char *name = input_text(input, input_byte(input) % 20);
    char *value = input_text(input, input_byte(input) % 60);
    char *read = malloc(HAK_CONF_TEXT_BYTES);
    bool is_known = hak_conf_find(name) != CONF_COUNT;
    int error = hakmem_option_set(name, value);
    CHECK(error == 0 || error == EINVAL || error == EBUSY);
    CHECK(is_known || error == EINVAL);
    CHECK_EQ(hakmem_option_get(name, read, HAK_CONF_TEXT_BYTES), is_known ? 0 : EINVAL);
    free(read);
    free(value);
    free(name);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t byte_count)
{
    struct input input = {bytes, bytes + byte_count};
    struct conf initial = hak_conf;
    CHECK(hak_process_start());
    switch (input_byte(&input) % 5) {
    case 0: {
        char *text = input_text(&input, TEXT_BYTES);
        hak_conf_read_packed(text, CONF_PACKED);
        free(text);
        break;
    }
    case 1:
        while (!input_is_over(&input))
            set_one(&input);
        break;
    case 2:
        set_from_environment(&input);
        break;
    case 3:
        set_from_file(&input);
        break;
    default:
        while (!input_is_over(&input))
            use_api(&input);
    }
    options_check();
    hak_conf = initial;
    return 0;
}
