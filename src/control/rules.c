/* SPDX-License-Identifier: MIT */
#include "control/rules.h"

#include "conf/conf.h"
#include "control/request.h"
#include "os/output.h"
#include "profile/site_rules.h"

#include <string.h>

static bool is_learning(struct text *answer)
{
    if ((hak_conf_number(learn) & LEARN_SITES) != 0)
        return true;
    hak_text_add(answer, "call sites are not watched: start the program with learn=sites");
    return false;
}

/* Where the answer's next line goes. */
struct lines {
    const struct os_kept_fd *file;
    size_t at;
    struct text *answer;
};

static bool add_line(struct lines *lines, const struct text *line)
{
    int error = hak_os_request_write(lines->file, lines->at, line->start, line->used);
    lines->at += line->used;
    if (error != 0)
        hak_os_unwritten_add(lines->answer, "the rules", NULL, hak_os_error_name(error), 0);
    return error == 0;
}

static bool add_effects(struct lines *lines)
{
    char written[HAK_EFFECT_LINE_BYTES];
    struct effect_line line;
    for (uint32_t i = 0; hak_rules_effect(i, &line); i++) {
        struct text text = {.start = written, .bytes = sizeof written};
        hak_effect_line_write(&text, &line);
        if (!add_line(lines, &text))
            return false;
    }
    return true;
}

bool hak_control_rules_list(const struct os_kept_fd *file, struct text *answer)
{
    struct lines lines = {file, sizeof(struct control_request), answer};
    char written[HAK_SITE_LINE_BYTES];
    uint32_t count = 0;
    struct site_line line;
    if (!is_learning(answer))
        return false;
    for (; hak_rules_line(count, &line); count++) {
        struct text text = {.start = written, .bytes = sizeof written};
        hak_site_line_write(&text, &line);
        if (!add_line(&lines, &text))
            return false;
    }
    if (!add_effects(&lines))
        return false;
    hak_text_add_number(answer, count, 10);
    hak_text_add(answer, count == 1 ? " rule" : " rules");
    return true;
}

bool hak_control_rules_take(const char *words, struct text *answer)
{
    char written[HAK_REQUEST_WORDS_BYTES + 1];
    struct site_line line;
    size_t bytes = strlen(words);
    if (!is_learning(answer))
        return false;
    memcpy(written, words, bytes);
    written[bytes] = '\n';
    if (hak_site_line_read(&line, written, bytes + 1) != bytes + 1) {
        hak_text_add(answer, "this version of hakmem does not understand the rule");
        return false;
    }
    if (!hak_rules_bring(&line)) {
        hak_text_add(answer, "there is no room for another rule now");
        return false;
    }
    hak_text_add(answer, "the site is ");
    hak_text_add(answer, hak_rule_state_word(line.state));
    return true;
}
