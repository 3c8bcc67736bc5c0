/* SPDX-License-Identifier: MIT */
#include "pane.h"

#include <stdarg.h>
#include <string.h>

static void append(char *to, size_t bytes, const char *piece)
{
    size_t used = strlen(to);
    snprintf(to + used, bytes - used, "%s", piece);
}

/* Columns that a text takes: escape sequences and second bytes of a character take none. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text != '\0'; text++) {
        if (*text == '\033')
            text += strcspn(text, "m");
        else if (((unsigned char)*text & 0xc0) != 0x80)
            width++;
        if (*text == '\0')
            break;
    }
    return width;
}

/* Cuts a text after so many columns. */
static void cut(char *text, int columns)
{
    int width = 0;
    for (; *text != '\0'; text++) {
        if (*text == '\033') {
            text += strcspn(text, "m");
            if (*text == '\0')
                return;
        } else if (((unsigned char)*text & 0xc0) != 0x80 && ++width > columns) {
            *text = '\0';
            return;
        }
    }
}

void pane_add(struct pane *pane, const char *format, ...)
{
    if (pane->count == PANE_LINES)
        return;
    char *line = pane->lines[pane->count++];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, PANE_LINE_BYTES - 8, format, arguments);
    va_end(arguments);
    cut(line, pane->columns);
    if (strchr(line, '\033') != NULL)
        append(line, PANE_LINE_BYTES, "\033[0m");
}

/* The bytes of a text that take at most so many columns, up to a space; all, if they do. */
static int bytes_within(const char *text, int columns)
{
    char piece[PANE_LINE_BYTES];
    snprintf(piece, sizeof piece, "%s", text);
    cut(piece, columns);
    int length = (int)strlen(piece), most = length;
    if (text[length] == '\0')
        return length;
    while (length > 1 && text[length] != ' ')
        length--;
    return length > 1 ? length : most;
}

void pane_add_words(struct pane *pane, const char *before, const char *text)
{
    int columns = pane->columns - width_of(before);
    while (*text != '\0' && pane->count < PANE_LINES) {
        int length = bytes_within(text, columns);
        pane_add(pane, "%s%.*s", before, length, text);
        text += length;
        text += strspn(text, " ");
    }
}

const char *pane_style(const struct view *view, const char *code)
{
    return view->is_plain ? "" : code;
}

void pane_add_title(struct pane *pane, const char *title)
{
    pane_add(pane, "%s%s%s", pane_style(pane->view, "\033[1;36m"), title,
             pane_style(pane->view, "\033[0m"));
}

struct pane_bar pane_bar(const struct view *view, uint64_t part, uint64_t whole, int columns)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    struct pane_bar bar = {""};
    columns = columns > 100 ? 100 : columns;
    double filled = whole == 0 ? 0 : (double)part / (double)whole * columns;
    filled = filled > columns ? columns : filled;
    int full = (int)filled;
    for (int i = 0; i < full; i++)
        append(bar.text, sizeof bar.text, view->is_ascii ? "#" : "█");
    if (!view->is_ascii)
        append(bar.text, sizeof bar.text, eighths[(int)((filled - full) * 8)]);
    else if (filled - full >= 0.5)
        append(bar.text, sizeof bar.text, "+");
    return bar;
}

static void print_padded(const char *line, int columns, FILE *to)
{
    fprintf(to, "%s%*s", line, columns - width_of(line), "");
}

static void print_line(const struct view *view, FILE *to)
{
    fputs(view->interval_ms == 0 ? "\n" : "\033[K\r\n", to);
}

void pane_keep(struct pane *pane, int most)
{
    if (pane->count > most)
        pane->count = most;
}

void pane_print(const struct pane *pane, FILE *to)
{
    for (int i = 0; i < pane->count; i++) {
        fputs(pane->lines[i], to);
        print_line(pane->view, to);
    }
}

void pane_print_beside(const struct pane *left, const struct pane *right, FILE *to)
{
    for (int i = 0; i < left->count || i < right->count; i++) {
        print_padded(i < left->count ? left->lines[i] : "", left->columns + PANE_GAP, to);
        fputs(i < right->count ? right->lines[i] : "", to);
        print_line(left->view, to);
    }
}
