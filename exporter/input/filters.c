#include "filters.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "exporter/base/array.h"
#include "exporter/base/text/names_alike.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/base/bytes/wire.h"

int ni_parse_size(const char *text, uint64_t *out) {
  char *end;
  errno = 0;
  unsigned long long v = strtoull(text, &end, 10);
  if (errno || end == text || *text == '-')
    return -EINVAL;
  uint64_t unit = 1;
  if (*end) {
    const char *k = strchr("KMGT", *end);
    const char *rest = end + 1;
    if (!k)
      return -EINVAL;
    if (*rest && strcmp(rest, "iB") != 0 && strcmp(rest, "B") != 0 && strcmp(rest, "i") != 0)
      return -EINVAL;
    for (int i = 0; i <= (int)(k - "KMGT"); i++)
      unit <<= 10;
  }
  *out = v * unit;
  return v > UINT64_MAX / unit ? -ERANGE : 0;
}

/* "10m", "1.5h": µs. Plain numbers are seconds. */
static int parse_span(const char *text, int64_t *us) {
  char *end;
  errno = 0;
  double v = strtod(text, &end), unit = 1;
  if (errno || end == text || v < 0)
    return -EINVAL;
  if (strcmp(end, "m") == 0)
    unit = 60;
  else if (strcmp(end, "h") == 0)
    unit = 3600;
  else if (strcmp(end, "d") == 0)
    unit = 86400;
  else if (strcmp(end, "ms") == 0)
    unit = 1e-3;
  else if (strcmp(end, "us") == 0)
    unit = 1e-6;
  else if (*end && strcmp(end, "s") != 0)
    return -EINVAL;
  if (v * unit > 1e11)
    return -ERANGE;
  *us = (int64_t)(v * unit * 1e6 + 0.5);
  return 0;
}

int ni_parse_when(const char *text, struct ni_when *w) {
  if (*text == '-' || *text == '+') {
    w->base = *text == '-' ? NI_WHEN_BEFORE_END : NI_WHEN_AFTER_START;
    return parse_span(text + 1, &w->us);
  }
  w->base = NI_WHEN_ABSOLUTE;
  struct tm tm = {0};
  int n = 0;
  double second;
  if (sscanf(text, "%4d-%2d-%2d%*1[Tt ]%2d:%2d:%lf%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
             &tm.tm_min, &second, &n) == 6 &&
      n) {
    tm.tm_year -= 1900;
    tm.tm_mon--;
    const bool is_date = tm.tm_mon >= 0 && tm.tm_mon <= 11 && tm.tm_mday >= 1 && tm.tm_mday <= 31;
    const bool is_time = tm.tm_hour <= 23 && tm.tm_min <= 59 && second >= 0 && second < 61;
    if (!is_date || !is_time)
      return -EINVAL;
    int64_t zone = 0;
    int h, m;
    char sign;
    const char *rest = text + n;
    if (strcmp(rest, "Z") != 0 && strcmp(rest, "z") != 0) {
      int used = 0;
      if (sscanf(rest, "%c%2d:%2d%n", &sign, &h, &m, &used) != 3 || rest[used])
        return -EINVAL;
      if (sign != '+' && sign != '-')
        return -EINVAL;
      zone = (sign == '-' ? -1 : 1) * (h * 3600 + m * 60);
    }
    w->us = ((int64_t)timegm(&tm) - zone) * 1000000 + (int64_t)(second * 1e6 + 0.5);
    return 0;
  }
  char *end;
  errno = 0;
  double v = strtod(text, &end);
  if (errno || end == text || *end)
    return -EINVAL;
  if (v < 0 || v > 4102444800.0)
    return -EINVAL;
  w->us = (int64_t)(v * 1e6 + 0.5);
  return 0;
}

enum { OTHERS_MAX = 256, SAID_MAX = 8, LIKE_MAX = 64 };

struct ni_words_others {
  pthread_mutex_t lock; /* for adding */
  size_t n;             /* released by add_other(), acquired by everybody else */
  char *text[OTHERS_MAX];
};

int ni_words_add(struct ni_words *w, const char *list) {
  if (!list[strspn(list, ",")])
    return -EINVAL;
  if (!w->others) {
    if (!(w->others = calloc(1, sizeof *w->others)))
      return -ENOMEM;
    pthread_mutex_init(&w->others->lock, NULL);
  }
  while (*list) {
    size_t n = strcspn(list, ",");
    if (n) {
      if (!ni_array_room(w->word, w->n, w->cap) || !(w->word[w->n].text = strndup(list, n)))
        return -ENOMEM;
      w->word[w->n++].met = false;
    }
    list += n + (list[n] == ',');
  }
  return 0;
}

void ni_words_free(struct ni_words *w) {
  for (size_t i = 0; i < w->n; i++)
    free(w->word[i].text);
  for (size_t i = 0; w->others && i < w->others->n; i++)
    free(w->others->text[i]);
  if (w->others)
    pthread_mutex_destroy(&w->others->lock);
  free(w->others);
  free(w->word);
  *w = (struct ni_words){0};
}

static bool is_known_other(const struct ni_words_others *o, size_t from, size_t n, const char *text) {
  for (size_t i = from; i < n; i++)
    if (strcmp(o->text[i], text) == 0)
      return true;
  return false;
}

/*
 * Remembers a word that no filter named, for a message only. Words for which there is no room are left out.
 */
static void add_other(struct ni_words_others *o, const char *text) {
  size_t n = __atomic_load_n(&o->n, __ATOMIC_ACQUIRE); /* the release below */
  if (n == OTHERS_MAX || is_known_other(o, 0, n, text))
    return;
  pthread_mutex_lock(&o->lock);
  size_t now = o->n;
  if (now < OTHERS_MAX && !is_known_other(o, n, now, text) && (o->text[now] = strdup(text)))
    __atomic_store_n(&o->n, now + 1, __ATOMIC_RELEASE); /* the acquire above */
  pthread_mutex_unlock(&o->lock);
}

/* Sets the flag once. Threads that find it set do not write, so that they share the cache line. */
static bool note_met(bool *met) {
  if (!__atomic_load_n(met, __ATOMIC_RELAXED))
    __atomic_store_n(met, true, __ATOMIC_RELAXED);
  return true;
}

static bool has_word(const struct ni_words *w, const char *text, int (*compare)(const char *, const char *)) {
  bool found = false;
  for (size_t i = 0; i < w->n; i++)
    if (compare(text, w->word[i].text) == 0)
      found = note_met(&w->word[i].met);
  if (!found && w->others)
    add_other(w->others, text);
  return found;
}

bool ni_words_have(const struct ni_words *w, const char *text) { return has_word(w, text, strcmp); }
bool ni_words_have_func(const struct ni_words *w, const char *func) { return has_word(w, func, strcasecmp); }

bool ni_words_have_comm(const struct ni_words *w, uint64_t hash, const char *name) {
  char text[128], *end;
  bool found = false;
  for (size_t i = 0; i < w->n; i++) {
    const char *word = w->word[i].text;
    bool number = strncasecmp(word, "0x", 2) == 0 && word[2];
    const bool is_hash = number && strtoull(word, &end, 16) == hash && !*end;
    if (is_hash || (name && strcmp(name, word) == 0))
      found = note_met(&w->word[i].met);
  }
  if (found)
    return true;
  snprintf(text, sizeof text, name && *name ? "%.90s (0x%" PRIx64 ")" : "%.0s0x%" PRIx64, name ? name : "",
           hash);
  if (w->others)
    add_other(w->others, text);
  return false;
}

struct likeness {
  const char *text;
  unsigned unlike;
};

static int compare_by_likeness(const void *a, const void *b) {
  const struct likeness *x = a, *y = b;
  return x->unlike != y->unlike ? (x->unlike < y->unlike ? -1 : 1) : strcmp(x->text, y->text);
}

static void report_unmet_words(const struct ni_words *w, const char *command, const char *option,
                               const char *where) {
  struct likeness there[OTHERS_MAX + SAID_MAX];
  for (size_t i = 0; i < w->n; i++) {
    size_t n = 0;
    if (w->word[i].met)
      continue;
    for (size_t k = 0; k < w->n && n < SAID_MAX; k++)
      if (w->word[k].met)
        there[n++].text = w->word[k].text;
    for (size_t k = 0; k < w->others->n; k++)
      there[n++].text = w->others->text[k];
    for (size_t k = 0; k < n; k++) {
      const char *a = there[k].text, *b = w->word[i].text;
      there[k].unlike = ni_edits(a, strnlen(a, LIKE_MAX), b, strnlen(b, LIKE_MAX), true);
    }
    qsort(there, n, sizeof *there, compare_by_likeness);
    ni_say(stderr, "%s: --%s %s: there is none in %s", command, option, w->word[i].text, where);
    for (size_t k = 0; k < n && k < SAID_MAX; k++)
      ni_say(stderr, "%s%s", k ? ", " : "; there are ", there[k].text);
    if (n > SAID_MAX)
      ni_say(stderr, " and %zu%s more", n - SAID_MAX, w->others->n == OTHERS_MAX ? " or" : "");
    ni_say(stderr, "\n");
  }
}

int ni_ranks_add(struct ni_ranks *r, const char *list) {
  if (!*list)
    return -EINVAL;
  if (!r->seen) {
    if (!(r->seen = malloc(sizeof *r->seen)))
      return -ENOMEM;
    *r->seen = (struct ni_ranks_seen){INT64_MAX, INT64_MIN, false};
  }
  for (const char *p = list; *p; p += *p == ',') {
    char *end;
    errno = 0;
    long from = *p >= '0' && *p <= '9' ? strtol(p, &end, 10) : -1, to = from;
    if (from < 0)
      return -EINVAL;
    if (*end == '-') {
      p = end + 1;
      if (*p < '0' || *p > '9')
        return -EINVAL;
      to = strtol(p, &end, 10);
    }
    if (errno || (*end && *end != ','))
      return -EINVAL;
    if (to < from || to > INT32_MAX)
      return -EINVAL;
    if (!ni_array_room(r->span, r->n, r->cap))
      return -ENOMEM;
    r->span[r->n].from = from;
    r->span[r->n].met = false;
    r->span[r->n++].to = to;
    p = end;
  }
  return 0;
}

int ni_sizes_add(struct ni_ranks *r, const char *list) {
  if (!*list)
    return -EINVAL;
  for (const char *p = list; *p; p += *p == ',') {
    char word[64];
    size_t n = strcspn(p, ",");
    if (n >= sizeof word)
      return -EINVAL;
    memcpy(word, p, n);
    word[n] = 0;
    char *dash = strchr(word, '-');
    uint64_t from, to;
    if (dash)
      *dash = 0;
    int e = ni_parse_size(word, &from);
    if (e == 0)
      e = ni_parse_size(dash ? dash + 1 : word, &to);
    if (e < 0 || to < from || to > INT64_MAX)
      return -EINVAL;
    if (!ni_array_room(r->span, r->n, r->cap))
      return -ENOMEM;
    r->span[r->n].from = (int64_t)from;
    r->span[r->n].met = false;
    r->span[r->n++].to = (int64_t)to;
    p += n;
  }
  return 0;
}

void ni_ranks_free(struct ni_ranks *r) {
  free(r->span);
  free(r->seen);
  *r = (struct ni_ranks){0};
}

/* Relaxed, and what two threads do at once may be lost: for a message only. */
static void note_rank(struct ni_ranks_seen *seen, int64_t rank) {
  if (rank < __atomic_load_n(&seen->lowest, __ATOMIC_RELAXED))
    __atomic_store_n(&seen->lowest, rank, __ATOMIC_RELAXED);
  if (rank > __atomic_load_n(&seen->highest, __ATOMIC_RELAXED))
    __atomic_store_n(&seen->highest, rank, __ATOMIC_RELAXED);
}

/*
 * Is the list's word at p (n bytes) made of digits, or two such with a dash between? Only then it is no name.
 */
static bool is_number(const char *p, size_t n) {
  const size_t first = strspn(p, "0123456789");
  if (first == 0 || first >= n)
    return first == n;
  return p[first] == '-' && first + 1 < n && strspn(p + first + 1, "0123456789") == n - first - 1;
}

/* Tags go up to 2^63 - 1, and 0 is none. */
int ni_tags_add_span(struct ni_ranks *r, const char *p) {
  char *end;
  errno = 0;
  const unsigned long long from = strtoull(p, &end, 10),
                           to = *end == '-' ? strtoull(end + 1, &end, 10) : from;
  const bool is_range = from >= 1 && to >= from && to <= INT64_MAX;
  if (errno || !is_range)
    return -EINVAL;
  if (!r->seen) {
    if (!(r->seen = malloc(sizeof *r->seen)))
      return -ENOMEM;
    *r->seen = (struct ni_ranks_seen){INT64_MAX, INT64_MIN, false};
  }
  if (!ni_array_room(r->span, r->n, r->cap))
    return -ENOMEM;
  r->span[r->n].from = (int64_t)from;
  r->span[r->n].met = false;
  r->span[r->n++].to = (int64_t)to;
  return 0;
}

int ni_tags_add(struct ni_tag_filter *t, const char *list) {
  int e = 0;
  if (!list[strspn(list, ",")])
    return -EINVAL;
  for (const char *p = list; e == 0 && *p;) {
    const size_t n = strcspn(p, ",");
    char word[128];
    if (n >= sizeof word)
      return -EINVAL;
    memcpy(word, p, n);
    word[n] = 0;
    p += n + (p[n] == ',');
    if (n == 0)
      continue;
    t->n++;
    if (strcmp(word, "none") == 0)
      t->none = true;
    else
      e = is_number(word, n) ? ni_tags_add_span(&t->number, word) : ni_words_add(&t->name, word);
  }
  return e;
}

void ni_tags_free(struct ni_tag_filter *t) {
  ni_ranks_free(&t->number);
  ni_words_free(&t->name);
  free(t->named);
  *t = (struct ni_tag_filter){0};
}

bool ni_tags_have(const struct ni_tag_filter *t, uint64_t tag) {
  if (tag == 0 || tag > INT64_MAX) {
    if (t->none && tag == 0)
      note_met(&((struct ni_tag_filter *)t)->none_met);
    return t->none && tag == 0;
  }
  bool found = t->number.n && ni_ranks_have(&t->number, (int64_t)tag);
  for (size_t i = 0; !found && i < t->n_named; i++)
    found = t->named[i] == tag;
  return found;
}

bool ni_ranks_have(const struct ni_ranks *r, int64_t rank) {
  bool found = false;
  if (r->seen && rank >= 0)
    note_rank(r->seen, rank);
  for (size_t i = 0; i < r->n; i++)
    if (rank >= r->span[i].from && rank <= r->span[i].to)
      found = note_met(&r->span[i].met);
  return found;
}

/* Looks at the spans alone: to ask the filter would be remembered. */
static bool is_in_spans(const struct ni_ranks *r, int64_t rank) {
  bool found = false;
  for (size_t i = 0; !found && i < r->n; i++)
    found = rank >= r->span[i].from && rank <= r->span[i].to;
  return found;
}

bool ni_ranks_have_both(const struct ni_ranks *rank, const struct ni_ranks *job_rank, int64_t of_comm,
                        int64_t of_job, bool passes) {
  const bool is_of_comm = !rank->n || ni_ranks_have(rank, of_comm);
  if (passes && rank->n && of_job >= 0 && is_in_spans(rank, of_job) != is_of_comm)
    __atomic_store_n(&rank->seen->differs, true, __ATOMIC_RELAXED);
  return (!job_rank->n || ni_ranks_have(job_rank, of_job)) && is_of_comm;
}

/* found: another filter found something; else that one has told why nothing is left. */
static void report_unmet_ranks(const struct ni_ranks *r, const char *command, const char *option,
                               const char *where, bool found) {
  for (size_t i = 0; i < r->n; i++) {
    if (r->span[i].met || (!found && r->seen->lowest > r->seen->highest))
      continue;
    ni_say(stderr, "%s: --%s %" PRId64, command, option, r->span[i].from);
    if (r->span[i].to != r->span[i].from)
      ni_say(stderr, "-%" PRId64, r->span[i].to);
    ni_say(stderr, ": there is none in %s", where);
    if (r->seen->lowest <= r->seen->highest)
      ni_say(stderr, "; the lowest is %" PRId64 ", the highest %" PRId64, r->seen->lowest, r->seen->highest);
    ni_say(stderr, "\n");
  }
}

static bool is_any_met(const struct ni_words *w) {
  bool is_met = w->n == 0;
  for (size_t i = 0; i < w->n; i++)
    is_met |= w->word[i].met;
  return is_met;
}

/* Users think in ranks of the job: whoever meant these is told. */
static void report_numbering(const struct ni_ranks *r, bool with_job_rank, const char *command) {
  if (!r->n || !r->seen->differs || with_job_rank)
    return;
  ni_say(stderr, "%s: --rank is the rank in each communicator; for ranks of the job give --job-rank ",
         command);
  for (size_t i = 0; i < r->n; i++) {
    ni_say(stderr, "%s%" PRId64, i ? "," : "", r->span[i].from);
    if (r->span[i].to != r->span[i].from)
      ni_say(stderr, "-%" PRId64, r->span[i].to);
  }
  ni_say(stderr, "\n");
}

void ni_filters_say_unmet(const struct ni_filters *f, const char *command) {
  const char *all = "these logs", *left = "what the other filters leave";
  const bool is_of_some =
      f->comm.n || f->host.n || f->rank.n || f->job_rank.n; /* of others nobody has looked at functions */
  report_unmet_words(&f->coll, command, "coll", is_of_some ? left : all);
  report_unmet_words(&f->comm, command, "comm", all);
  report_unmet_words(&f->host, command, "node", all);
  report_unmet_ranks(&f->rank, command, "rank", all, true);
  report_unmet_ranks(&f->job_rank, command, "job-rank", all, true);
  report_numbering(&f->rank, f->job_rank.n > 0, command);
  report_unmet_words(&f->tag.name, command, "tag", all);
  const bool others = is_any_met(&f->coll) && is_any_met(&f->comm) && is_any_met(&f->host);
  report_unmet_ranks(&f->tag.number, command, "tag", left, others);
  if (f->tag.none && !f->tag.none_met)
    ni_say(stderr, "%s: --tag none: there is no untagged operation in what the other filters leave\n",
           command);
  report_unmet_ranks(&f->sn, command, "sn", left, others);
}

static void wire_met(struct ni_wire *w, bool *met) {
  bool is_met = *met;
  ni_wire_bool(w, &is_met);
  *met |= is_met;
}

static int compare_by_text(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static void wire_words_met(struct ni_wire *w, struct ni_words *x) {
  size_t n = x->others ? x->others->n : 0;
  for (size_t i = 0; i < x->n; i++)
    wire_met(w, &x->word[i].met);
  if (n && !w->load)
    qsort(x->others->text, n, sizeof *x->others->text, compare_by_text);
  ni_wire_count(w, &n, 1);
  for (size_t i = 0; i < n && !w->bad; i++) {
    char *text = w->load ? NULL : x->others->text[i];
    ni_wire_text(w, &text);
    if (!w->load)
      continue;
    if (text && x->others)
      add_other(x->others, text);
    free(text);
  }
}

static void wire_ranks_met(struct ni_wire *w, struct ni_ranks *x) {
  struct ni_ranks_seen s = x->seen ? *x->seen : (struct ni_ranks_seen){INT64_MAX, INT64_MIN, false};
  for (size_t i = 0; i < x->n; i++)
    wire_met(w, &x->span[i].met);
  NI_WIRE(w, &s.lowest, &s.highest, &s.differs);
  if (!w->load || w->bad || !x->seen)
    return;
  if (s.lowest < x->seen->lowest)
    x->seen->lowest = s.lowest;
  if (s.highest > x->seen->highest)
    x->seen->highest = s.highest;
  x->seen->differs |= s.differs;
}

void ni_filters_wire_met(struct ni_wire *w, struct ni_filters *f) {
  wire_words_met(w, &f->coll);
  wire_words_met(w, &f->comm);
  wire_words_met(w, &f->host);
  wire_ranks_met(w, &f->rank);
  wire_ranks_met(w, &f->job_rank);
  wire_ranks_met(w, &f->sn);
  wire_ranks_met(w, &f->tag.number);
  wire_words_met(w, &f->tag.name);
  wire_met(w, &f->tag.none_met);
}

const char *ni_filters_refuse(const struct ni_filters *f) {
  if (f->since.base != f->until.base || f->since.base == NI_WHEN_NONE)
    return NULL;
  bool reversed = f->since.base == NI_WHEN_BEFORE_END ? f->since.us < f->until.us : f->since.us > f->until.us;
  return reversed ? NI_WHEN_REVERSED : NULL;
}

const char *ni_filters_names(const struct ni_filters *f, char out[128]) {
  const struct {
    const char *name;
    size_t n;
  } all[] = {{"--coll", f->coll.n}, {"--comm", f->comm.n}, {"--node", f->host.n},
             {"--rank", f->rank.n}, {"--sn", f->sn.n},     {"--job-rank", f->job_rank.n},
             {"--size", f->size.n}, {"--tag", f->tag.n}};
  size_t given = 0, put = 0, at = 0;
  *out = 0;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    given += all[i].n > 0;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i].n) {
      const char *before = put == 0 ? "" : put + 1 == given ? " and " : ", ";
      at += (size_t)snprintf(out + at, 128 - at, "%s%s", before, all[i].name);
      put++;
    }
  return out;
}

bool ni_filters_any(const struct ni_filters *f) {
  const bool has_time = f->since.base || f->until.base;
  const size_t words =
      f->coll.n + f->comm.n + f->host.n + f->rank.n + f->job_rank.n + f->sn.n + f->size.n + f->tag.n;
  return has_time || words > 0;
}

bool ni_filters_relative(const struct ni_filters *f) {
  return f->since.base > NI_WHEN_ABSOLUTE || f->until.base > NI_WHEN_ABSOLUTE;
}

void ni_filters_free(struct ni_filters *f) {
  ni_words_free(&f->coll);
  ni_words_free(&f->comm);
  ni_words_free(&f->host);
  ni_ranks_free(&f->rank);
  ni_ranks_free(&f->job_rank);
  ni_ranks_free(&f->sn);
  ni_ranks_free(&f->size);
  ni_tags_free(&f->tag);
}

int64_t ni_when_resolve(const struct ni_when *w, int64_t none, int64_t first, int64_t last) {
  switch (w->base) {
    case NI_WHEN_ABSOLUTE:
      return w->us;
    case NI_WHEN_BEFORE_END:
      return last - w->us;
    case NI_WHEN_AFTER_START:
      return first + w->us;
    default:
      return none;
  }
}
