/*
 * The parser: options as getopt_long() takes them (abbreviations, --a=b, --a b, -ab, anywhere, --), '_' and
 * '-' alike.
 */
#include "words.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "exporter/base/text/plural.h"
#include "command.h"
#include "page.h"

struct parse {
  const struct ni_command *c;
  const char *name;
  void *into;
  int *done;
  char gone[512]; /* " --name=word ...": what is to be named as without effect */
};

/* A usage error, in one sentence. */
static int refuse_usage(struct parse *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int refuse_usage(struct parse *p, const char *format, ...) {
  va_list args;
  ni_say(stderr, "%s: ", p->name);
  va_start(args, format);
  ni_vsay(stderr, format, args);
  va_end(args);
  if (strchr(p->name, ':'))
    ni_say(stderr, "\n"); /* a line of a settings file: it has no help */
  else
    ni_say(stderr, "\nTry `%s --help' for more information.\n", p->name);
  *p->done = 1;
  return NI_EXIT_USAGE;
}

/* The number of the word in a|b|c, or -1. */
static int find_choice(const char *words, const char *text) {
  size_t n = strlen(text);
  for (int i = 0; *words; i++) {
    size_t k = strcspn(words, "|");
    if (k == n && memcmp(words, text, n) == 0)
      return i;
    words += k + (words[k] != 0);
  }
  return -1;
}

static int store_value(const struct ni_opt *o, void *into, const char *text) {
  char *at = (char *)into + o->at;
  uint64_t v = 0;
  int e;
  switch (o->kind) {
    case NI_OPT_FLAG:
      *(bool *)at = true;
      return 0;
    case NI_OPT_NUMBER:
    case NI_OPT_SIZE:
      if (ni_parse_size(text, &v) < 0 || v < o->min || (o->max && v > o->max))
        return -EINVAL;
      break;
    case NI_OPT_CHOICE:
      if ((e = find_choice(o->want, text)) < 0)
        return -EINVAL;
      v = o->size == sizeof(bool) ? 1 : o->size == sizeof(char *) ? (uintptr_t)text : (unsigned)e;
      break;
    case NI_OPT_TEXT:
      if (strlen(text) < o->min)
        return -EINVAL;
      v = (uintptr_t)text;
      break;
    case NI_OPT_WHEN:
      return ni_parse_when(text, (struct ni_when *)at) < 0 ? -EINVAL : 0;
    case NI_OPT_NAMES:
      return ni_words_add((struct ni_words *)at, text);
    case NI_OPT_RANKS:
      return ni_ranks_add((struct ni_ranks *)at, text);
    case NI_OPT_TAGS:
      return ni_tags_add((struct ni_tag_filter *)at, text);
    case NI_OPT_INPUTS:
      return ni_inputs_add((struct ni_inputs *)at, text);
    case NI_OPT_TAKE:
      return o->take(o, into, text);
    case NI_OPT_REST:
    case NI_OPT_END:
      break;
  }
  if (o->size == sizeof(uint64_t))
    *(uint64_t *)at = v;
  else if (o->size == sizeof(uint32_t))
    *(uint32_t *)at = (uint32_t)v;
  else
    *(bool *)at = v != 0;
  return 0;
}

static int report_failure(struct parse *p, int e) {
  *p->done = 1;
  ni_say(stderr, "%s: %s\n", p->name, strerror(-e));
  return NI_EXIT_COULD_NOT_RUN;
}

/* What every command has. */
static int run_common_option(struct parse *p, size_t what) {
  *p->done = 1;
  if (what == NI_COMMON_HELP)
    ni_words_help(stdout, p->name, p->c);
  if (what == NI_COMMON_VERSION)
    ni_say(stdout, "%.*s %s (%s)\n", (int)strcspn(p->name, " "), p->name, NI_VERSION, NI_GIT_REV);
  return NI_EXIT_FINE;
}

/* ---- what had a meaning once ---- */

enum { LIST_MAX = 256 }; /* of a value that can have such a word; a longer one is judged as it is */

/* Remembers it for report_gone(), once. word: of the value, n bytes; none: the option as a whole. */
static void note_gone(struct parse *p, const struct ni_opt *o, const char *word, size_t n) {
  char text[128];
  snprintf(text, sizeof text, " --%s%s%.*s,", o->name, n ? "=" : "", (int)n, word);
  if (strstr(p->gone, text))
    return;
  snprintf(p->gone + strlen(p->gone), sizeof p->gone - strlen(p->gone), "%s", text);
}

/* The value, or where a part of its words are gone the others, in `rest`; NULL: nothing is left. */
static const char *drop_gone_words(struct parse *p, const struct ni_opt *o, const char *value,
                                   char rest[LIST_MAX]) {
  size_t used = 0;
  bool any_left = false;
  bool any_gone = false;
  if (strlen(value) >= LIST_MAX)
    return value;
  for (const char *word = value;; word++) {
    const size_t n = strcspn(word, ",");
    char one[LIST_MAX];
    snprintf(one, sizeof one, "%.*s", (int)n, word);
    if (find_choice(o->gone, one) >= 0) {
      note_gone(p, o, word, n);
      any_gone = true;
    } else {
      used += (size_t)snprintf(rest + used, LIST_MAX - used, "%s%s", any_left ? "," : "", one);
      any_left = true;
    }
    word += n;
    if (!*word)
      return !any_left ? NULL : any_gone ? rest : value;
  }
}

static int accept_option(struct parse *p, const struct ni_opt *o, const char *value) {
  char want[512], rest[LIST_MAX];
  for (const struct ni_opt *x = ni_words_common; x->kind; x++)
    if (x == o)
      return run_common_option(p, x->at);
  if (o->gone && !*o->gone) {
    note_gone(p, o, "", 0);
    return 0;
  }
  if (o->gone && !(value = drop_gone_words(p, o, value, rest)))
    return 0;
  int e = store_value(o, p->into, value);
  if (e == -EINVAL || e == -ERANGE)
    return refuse_usage(p, "%s%s%s%s: want %s", o->name ? "--" : "", o->name ? o->name : "",
                        o->name ? "=" : "", value, ni_words_accepted(o, false, want, sizeof want));
  return e < 0 ? report_failure(p, e) : 0;
}

/* Is text (n bytes) the name, or how it begins? */
static bool is_abbreviation(const char *name, const char *text, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (name[i] != (text[i] == '_' ? '-' : text[i]) || !name[i])
      return false;
  return true;
}

struct matches {
  const struct ni_opt *exact, *last;
  unsigned n;
  char list[1024]; /* their names, for a refusal */
};

/* Which rows text (n bytes) names or abbreviates: of those that help shows, or of the others. */
static struct matches match_rows(const struct ni_command *c, const char *text, size_t n, bool shown) {
  const struct ni_opt *tables[] = {c->opt, ni_words_common};
  struct matches m = {0};
  for (int t = 0; t < 2; t++)
    for (const struct ni_opt *o = tables[t]; o->kind; o++) {
      if (!o->name || (o->help != NULL) != shown || !is_abbreviation(o->name, text, n))
        continue;
      if (!o->name[n])
        m.exact = o;
      m.last = o;
      m.n++;
      snprintf(m.list + strlen(m.list), sizeof m.list - strlen(m.list), " '--%s'", o->name);
    }
  return m;
}

/* The row that text (n bytes) names or abbreviates; NULL: refused. */
static const struct ni_opt *find_option(struct parse *p, const char *text, size_t n) {
  struct matches m = match_rows(p->c, text, n, true);
  const struct matches hidden = match_rows(p->c, text, n, false);
  if (m.exact)
    return m.exact;
  if (hidden.exact)
    return hidden.exact;
  if (m.n == 0)
    m = hidden;
  if (m.n == 1)
    return m.last;
  if (m.n)
    refuse_usage(p, "option '--%.*s' is ambiguous; possibilities:%s", (int)n, text, m.list);
  else
    refuse_usage(p, "unrecognized option '--%.*s'", (int)n, text);
  return NULL;
}

static const struct ni_opt *find_by_letter(const struct ni_opt *o, char letter) {
  while (o->kind && o->letter != letter)
    o++;
  return o->kind ? o : NULL;
}

/* --name, --name=value, --name value. *i moves over the value. */
static int parse_long_option(struct parse *p, int argc, char **argv, int *i) {
  const char *text = argv[*i] + 2;
  size_t n = strcspn(text, "=");
  const struct ni_opt *o = find_option(p, text, n);
  if (!o)
    return NI_EXIT_USAGE;
  if (!o->arg)
    return text[n] ? refuse_usage(p, "option '--%s' doesn't allow an argument", o->name)
                   : accept_option(p, o, NULL);
  if (text[n])
    return accept_option(p, o, text + n + 1);
  if (ni_opt_may_lack(o))
    return accept_option(p, o, "");
  if (*i + 1 >= argc)
    return refuse_usage(p, "option '--%s' requires an argument", o->name);
  return accept_option(p, o, argv[++*i]);
}

/* -a, -ab, -avalue, -a value. */
static int parse_letters(struct parse *p, int argc, char **argv, int *i) {
  for (const char *s = argv[*i] + 1; *s; s++) {
    const struct ni_opt *o = find_by_letter(p->c->opt, *s);
    if (!o)
      o = find_by_letter(ni_words_common, *s == '?' ? 'h' : *s);
    if (!o)
      return refuse_usage(p, "invalid option -- '%c'", *s);
    if (o->arg && !s[1] && *i + 1 >= argc)
      return refuse_usage(p, "option requires an argument -- '%c'", *s);
    if (o->arg)
      return accept_option(p, o, s[1] ? s + 1 : argv[++*i]);
    int code = accept_option(p, o, NULL);
    if (*p->done)
      return code;
  }
  return 0;
}

/* Was the option given? Only for rows that have .without, and for those that they name. */
static bool is_given(const struct ni_opt *o, const void *into) {
  const char *at = (const char *)into + o->at;
  return o->kind == NI_OPT_FLAG ? *(const bool *)at : *(const char *const *)at != NULL;
}

/* 0, or refused: two options that contradict each other. */
static int refuse_contradiction(struct parse *p) {
  for (const struct ni_opt *o = p->c->opt; o->kind; o++) {
    if (!o->without || !is_given(o, p->into))
      continue;
    const struct ni_opt *other = find_option(p, o->without, strlen(o->without));
    if (other && is_given(other, p->into))
      return refuse_usage(p, "--%s does not go with --%s: leave out one of them", o->name, o->without);
  }
  return 0;
}

/*
 * Names options that have no effect any more. Programs that read JSON do not expect that line: they get none.
 */
static void report_gone(const struct parse *p) {
  if (!*p->gone)
    return;
  for (const struct ni_opt *o = p->c->opt; o->kind; o++)
    if (o->name && strcmp(o->name, "json") == 0 && is_given(o, p->into))
      return;
  const int n = (int)strlen(p->gone) - 1; /* without the last comma */
  ni_say(stderr, "%s: no effect any more:%.*s\n", p->name, n, p->gone);
}

int ni_words_parse(const struct ni_command *c, int argc, char **argv, void *into, int *done) {
  struct parse p = {.c = c, .name = argv[0], .into = into, .done = done};
  const struct ni_opt *plain = NULL;
  bool options = true;
  int code = 0, e = 0;
  *done = 0;
  for (const struct ni_opt *o = c->opt; o->kind; o++) {
    if (!o->name)
      plain = o;
    if (o->def && (e = store_value(o, into, o->def)) < 0)
      return report_failure(&p, e);
  }
  for (int i = 1; i < argc && !*done; i++) {
    const char *a = argv[i];
    if (options && strcmp(a, "--") == 0)
      options = false;
    else if (options && a[0] == '-' && a[1] == '-')
      code = parse_long_option(&p, argc, argv, &i);
    else if (options && a[0] == '-' && a[1])
      code = parse_letters(&p, argc, argv, &i);
    else if (plain && plain->kind == NI_OPT_REST) {
      *(char ***)((char *)into + plain->at) = argv + i;
      break;
    } else if (plain)
      code = accept_option(&p, plain, a);
    else
      code = refuse_usage(&p, "%s: %s takes no files", a, c->name);
  }
  if (*done)
    return code;
  if (plain && plain->kind == NI_OPT_INPUTS &&
      ((struct ni_inputs *)((char *)into + plain->at))->n < plain->min)
    return refuse_usage(&p, "%s", plain->want);
  const bool wants_rest = plain && plain->kind == NI_OPT_REST && plain->min;
  if (wants_rest && !*(char ***)((char *)into + plain->at))
    return refuse_usage(&p, "%s", plain->want);
  const char *why = c->refuse ? c->refuse(into) : NULL;
  code = why ? refuse_usage(&p, "%s", why) : refuse_contradiction(&p);
  if (!*done)
    report_gone(&p);
  return code;
}

void ni_inputs_unreadable(const char *who, const struct ni_files *files) {
  for (size_t i = 0; i < files->n_bad; i++)
    ni_say(stderr, "%s: %s: %s%s\n", who, files->bad[i].path, ni_unreadable_why(&files->bad[i]),
           files->bad[i].error == EACCES ? NI_UNREADABLE_ADVICE : "");
}

static bool is_of_another(const struct ni_file *f, void *run) {
  return f->run != 0 && f->run != *(const uint32_t *)run;
}

int ni_inputs_choose(const struct ni_inputs *in, const char *who, struct ni_files *files,
                     struct ni_runs *runs) {
  char text[256];
  int e = ni_runs_find(runs, files);
  if (e < 0 || !in->run)
    return e;
  uint32_t run = ni_runs_named(runs, in->run);
  if (run) {
    ni_files_drop(files, is_of_another, &run);
    return 0;
  }
  ni_say(
      stderr,
      "%s: --run=%s: want a number from 1 to %zu, last, or the id of a job that is there once; there %s:\n",
      who, in->run, runs->n, ni_plural(runs->n, "is", "are"));
  for (size_t i = 0; i < runs->n && i < 8; i++)
    ni_say(stderr, "  %s\n", ni_run_text(runs, i, text));
  if (runs->n > 8)
    ni_say(stderr, "  and %zu more\n", runs->n - 8);
  return -ENOENT;
}

int ni_inputs_find(const struct ni_inputs *in, const char *who, struct ni_files *out, struct ni_runs *runs) {
  int e = ni_discover(out, in->path, in->n);
  if (e < 0)
    return e;
  if (out->n)
    return ni_inputs_choose(in, who, out, runs);
  ni_inputs_unreadable(who, out);
  for (size_t i = 0; i < in->n; i++) {
    size_t k = 0;
    while (k < out->n_bad && strcmp(out->bad[k].path, in->path[i]) != 0)
      k++;
    if (k < out->n_bad)
      continue;
    ni_say(stderr, "%s: %s: no log files in it (*.log, *.log.gz, *.jsonl, *.jsonl.gz)\n", who, in->path[i]);
  }
  return -ENOENT;
}
