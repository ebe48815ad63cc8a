/*
 * What is said of a command's table: what its rows accept, help and man page as one walk in two styles.
 */
#include "page.h"

#include <ctype.h>
#include <string.h>

const struct ni_opt ni_words_common[] = {
    {"help", 'h', NI_OPT_FLAG, NULL, "This help", .at = NI_COMMON_HELP},
    {"usage", 0, NI_OPT_FLAG, NULL, NULL, .at = NI_COMMON_HELP},
    {"version", 'V', NI_OPT_FLAG, NULL, "The version", .at = NI_COMMON_VERSION},
    {0}};

/* "zstd, snappy, gzip or none" */
static void list_words(const char *words, char *out, size_t size) {
  for (const char *w = words; *w; w += *w == '|') {
    size_t n = strcspn(w, "|"), used = strlen(out);
    snprintf(out + used, size - used, "%s%.*s", w == words ? "" : w[n] ? ", " : " or ", (int)n, w);
    w += n;
  }
}

const char *ni_words_accepted(const struct ni_opt *o, bool in_help, char *out, size_t size) {
  static const char *const wants[] = {
      [NI_OPT_NUMBER] = "a number",
      [NI_OPT_RANKS] = "ranks and ranges, such as 0-7,16",
      [NI_OPT_TAGS] = "tags from 1 to 9223372036854775807, ranges of them, their names, or none for untagged",
      [NI_OPT_WHEN] =
          "2026-11-21T08:00:00Z, seconds since 1970, -10m (before the end) or +5m (after the start)",
      [NI_OPT_TAKE] = NULL};
  const char *want = o->want ? o->want : wants[o->kind];
  unsigned long long min = o->min, max = o->max < INT64_MAX ? o->max : 0;
  *out = 0;
  /* one word: its argument is called so */
  if (o->kind == NI_OPT_CHOICE && !(in_help && !strchr(want, '|')))
    list_words(want, out, size);
  else if (o->kind == NI_OPT_SIZE && min >> 20 == 0)
    snprintf(out, size, "%s", in_help ? "" : "a size, such as 64M or 2G"); /* any size will do */
  else if (o->kind == NI_OPT_SIZE && in_help)
    snprintf(out, size, "%lluM or more", min >> 20);
  else if (o->kind == NI_OPT_SIZE)
    snprintf(out, size, "a size of %lluM or more, such as %s or 2G", min >> 20, o->def);
  else if (o->kind == NI_OPT_NUMBER && max)
    snprintf(out, size, "%s%s%llu to %llu", in_help ? "" : want, in_help ? "" : " from ", min, max);
  else if (o->kind == NI_OPT_NUMBER && !in_help)
    snprintf(out, size, "%s from %llu on", want, min);
  else if (!in_help)
    snprintf(out, size, "%s", want ? want : "a value");
  return out;
}

/* ---- help and man pages ---- */

enum { WIDTH = 79, OPTION_COLUMN = 29, CODE_COLUMN = 6 };

struct ni_help_page {
  FILE *f;
  bool man, head;   /* head: the last line was one; a paragraph begins of itself there */
  int column;       /* where meanings begin */
  const char *name; /* of the program, and the command */
};

/* roff: what it would take for its own is escaped; a line never begins with what a request does. */
static void write_roff(FILE *f, const char *text) {
  for (bool start = true; *text; start = false) {
    size_t n = strcspn(text, "\\-`'~^");
    if (start && *text == '.')
      fputs("\\&", f);
    ni_say(f, "%.*s", (int)n, text);
    text += n;
    if (!*text)
      return;
    switch (*text++) {
      case '\\':
        fputs("\\e", f);
        break;
      case '-':
        fputs("\\-", f);
        break;
      case '`':
        fputs("\\(ga", f);
        break;
      case '~':
        fputs("\\(ti", f);
        break;
      case '^':
        fputs("\\(ha", f);
        break;
      default:
        fputs("\\(aq", f);
    }
  }
}

/* Words from column `at` on, in lines that begin at `indent`. Ends the line. */
static void fill_lines(FILE *f, int at, int indent, const char *text) {
  for (bool first = true; *text; first = false) {
    int n = (int)strcspn(text, " ");
    if (!first && at + 1 + n > WIDTH)
      at = ni_say(f, "\n%*s", indent, "") - 1;
    else if (!first)
      at += ni_say(f, " ");
    at += ni_say(f, "%.*s", n, text);
    text += n + (text[n] != 0);
  }
  ni_say(f, "\n");
}

void ni_help_head(struct ni_help_page *p, const char *head, int column) {
  p->column = column;
  p->head = true;
  if (!p->man) {
    ni_say(p->f, "\n%s:\n", head);
    return;
  }
  fputs(".SH ", p->f);
  for (; *head; head++)
    ni_say(p->f, "%c", toupper((unsigned char)*head));
  fputs("\n", p->f);
}

void ni_help_text(struct ni_help_page *p, const char *text) {
  while (text && *text) {
    int n = (int)strcspn(text, "\n");
    char line[1024];
    snprintf(line, sizeof line, "%.*s", n, text);
    if (p->man) {
      if (!p->head)
        fputs(".PP\n", p->f);
      p->head = false;
      write_roff(p->f, line);
      fputs("\n", p->f);
    } else {
      fill_lines(p->f, 0, 0, line);
    }
    text += n + (text[n] != 0);
  }
}

void ni_help_pair(struct ni_help_page *p, const char *word, const char *meaning) {
  p->head = false;
  if (p->man) {
    fputs(".TP\n\\fB", p->f);
    write_roff(p->f, word);
    fputs("\\fR\n", p->f);
    write_roff(p->f, meaning);
    fputs("\n", p->f);
    return;
  }
  int at = ni_say(p->f, "  %s", word);
  if (at < p->column)
    ni_say(p->f, "%*s", p->column - at, "");
  else
    ni_say(p->f, "\n%*s", p->column, "");
  fill_lines(p->f, p->column, p->column, meaning);
}

static void write_pairs(struct ni_help_page *p, const char *head, int column, const struct ni_meaning *pair) {
  if (!pair->word)
    return;
  ni_help_head(p, head, column);
  for (int i = 0; i < NI_MEANINGS_MAX && pair[i].word; i++)
    ni_help_pair(p, pair[i].word, pair[i].meaning);
}

/* A command line, and what it does beneath: it is mostly too long for a column. */
static void write_examples(struct ni_help_page *p, const struct ni_meaning *pair) {
  char line[512];
  if (!pair->word)
    return;
  ni_help_head(p, "Examples", 0);
  for (int i = 0; i < NI_MEANINGS_MAX && pair[i].word; i++) {
    snprintf(line, sizeof line, "%s%s%s", p->name, *pair[i].word ? " " : "", pair[i].word);
    if (p->man)
      ni_help_pair(p, line, pair[i].meaning);
    else {
      ni_say(p->f, "  %s\n      ", line);
      fill_lines(p->f, 6, 6, pair[i].meaning);
    }
  }
}

static void write_option(struct ni_help_page *p, const struct ni_opt *o) {
  char word[128], range[256], meaning[512];
  if (!o->name || !o->help)
    return;
  char letter[] = {'-', o->letter, ',', ' ', 0};
  ni_words_accepted(o, true, range, sizeof range);
  const char *before = o->letter ? letter : p->man ? "" : "    ";
  snprintf(word, sizeof word, "%s--%s%s%s", before, o->name, o->arg && !ni_opt_may_lack(o) ? "=" : "",
           o->arg ? o->arg : "");
  if (*range || o->def)
    snprintf(meaning, sizeof meaning, "%s (%s%s%s%s)", o->help, range, *range && o->def ? "; " : "",
             o->def ? "default " : "", o->def ? o->def : "");
  else
    snprintf(meaning, sizeof meaning, "%s", o->help);
  ni_help_pair(p, word, meaning);
}

/* All between the head of a page and its end. */
static void write_body(struct ni_help_page *p, const struct ni_command *c) {
  if (c->extra)
    c->extra(p);
  ni_help_head(p, "Options", OPTION_COLUMN);
  for (const struct ni_opt *o = c->opt; o->kind; o++)
    write_option(p, o);
  for (const struct ni_opt *o = ni_words_common; o->kind; o++)
    write_option(p, o);
  if (c->more && p->man)
    ni_help_head(p, "Notes", 0);
  else if (c->more)
    ni_say(p->f, "\n");
  ni_help_text(p, c->more);
  write_pairs(p, "Exit status", CODE_COLUMN, c->exits);
  if (c->exits[0].word)
    ni_help_pair(p, "64", "wrong usage");
  write_pairs(p, "Files", OPTION_COLUMN, c->files);
  write_examples(p, c->examples);
}

/* The lines of a synopsis, each with the program's name before it. */
static void write_synopsis(struct ni_help_page *p, const struct ni_command *c) {
  char line[256];
  const char *text = c->synopsis ? c->synopsis : line;
  snprintf(line, sizeof line, "[OPTION...]");
  for (const struct ni_opt *o = c->opt; o->kind; o++)
    if (!o->name)
      snprintf(line, sizeof line, "[OPTION...] %s", o->arg);
  for (bool first = true; *text; first = false) {
    int n = (int)strcspn(text, "\n");
    char part[256];
    snprintf(part, sizeof part, "%.*s", n, text);
    if (p->man) {
      fputs(first ? "\\fB" : ".br\n\\fB", p->f);
      write_roff(p->f, p->name);
      fputs("\\fR ", p->f);
      write_roff(p->f, part);
      fputs("\n", p->f);
    } else {
      ni_say(p->f, "%s %s %s\n", first ? "Usage:" : "      ", p->name, part);
    }
    text += n + (text[n] != 0);
  }
}

void ni_words_help(FILE *f, const char *name, const struct ni_command *c) {
  struct ni_help_page p = {.f = f, .name = name};
  write_synopsis(&p, c);
  ni_help_text(&p, c->about);
  write_body(&p, c);
}

void ni_words_man(FILE *f, const char *name, int section, const struct ni_command *c) {
  struct ni_help_page p = {.f = f, .name = name, .man = true};
  char title[128];
  snprintf(title, sizeof title, "%s", name);
  for (char *s = title; *s; s++)
    if (*s == ' ')
      *s = '-';
  ni_say(f, ".TH \"%s\" %d \"\" \"NCCL Inspector %s\" \"NCCL Inspector\"\n", title, section, NI_VERSION);
  fputs(".SH NAME\n", f);
  write_roff(f, title);
  fputs(" \\- ", f);
  write_roff(f, c->purpose);
  fputs("\n", f);
  if (c->opt) {
    fputs(".SH SYNOPSIS\n", f);
    write_synopsis(&p, c);
  }
  fputs(".SH DESCRIPTION\n", f);
  p.head = true;
  ni_help_text(&p, c->about);
  if (c->opt)
    write_body(&p, c);
  else
    c->extra(&p);
  fputs(".SH SEE ALSO\n", f);
  fputs(
      ".BR nccl-inspector (1),\n.BR nccl-inspector (7),\n.BR nccl-sim (1),\n.BR nccl-inspector-plugin (7)\n",
      f);
}
