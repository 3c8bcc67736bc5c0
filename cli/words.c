/* SPDX-License-Identifier: MIT */
#include "words.h"

#include "command.h"

#include <stdlib.h>
#include <string.h>

int words_read(const char *command, char **words, const struct word_option *options)
{
    char **left = words;
    for (; *words != NULL; words++) {
        const struct word_option *option = options;
        while (option->name != NULL && strcmp(option->name, *words) != 0)
            option++;
        if (option->name == NULL && (*words)[0] == '-' && (*words)[1] != '\0')
            return complain_word(command, *words);
        if (option->name == NULL)
            *left++ = *words;
        else if (option->value == NULL)
            *option->is_given = true;
        else if ((*option->value = *++words) == NULL)
            return complain(EXIT_USAGE, "%s: nothing follows %s", command, option->name);
    }
    *left = NULL;
    return EXIT_DONE;
}

int number_from(const char *word, int least, int most)
{
    if (word == NULL || *word == '\0' || word[strspn(word, "0123456789")] != '\0')
        return -1;
    long number = strtol(word, NULL, 10);
    return number >= least && number <= most ? (int)number : -1;
}

int process_number_from(const char *word)
{
    int number = number_from(word, 1, 1 << 30);
    return number < 0 ? 0 : number;
}
