/*
 * A time series of counters, written (exporter/model/counters/series_write.h) and read back (series.h): each
 * value is what it was, over wraps, resets, what could not be read and sets that change; what is damaged is
 * told, and nothing wrong comes of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/model/counters/series.h"
#include "exporter/model/counters/series_write.h"

enum { SAMPLES = 300, MOST = 2000 };
#define SECOND 1000000000

static char dir[] = "/tmp/ni-series.XXXXXX";
static char path[256];
static uint64_t state = 88172645463325252u;
static uint64_t rnd(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

/* What was written: by number of the sample. */
static struct truth {
  uint64_t set_sn, missed;
  size_t n;
  struct ni_reading r[MOST];
  char first[64];
} *truth;
static size_t n_truth;

static void fill(struct ni_set *s, unsigned entities, unsigned each, const char *name) {
  char text[64];
  memset(s, 0, sizeof *s);
  for (unsigned i = 0; i < entities; i++) {
    snprintf(text, sizeof text, "cxi%u", i);
    struct ni_entity *e = ni_set_entity(s, i % 2 ? NI_METRIC_IB : NI_METRIC_CXI, text);
    e->link_bytes_s = 25e9;
    e->pci = i ? ni_set_text(s, "0000:c1:00.0") : NULL;
    for (unsigned k = 0; k < each; k++) {
      snprintf(text, sizeof text, k % 5 == 4 ? "%s_in_use_%u" : "%s\"%u", name, k);
      assert_true(ni_set_counter(s, text));
    }
  }
}

static void write_one(struct ni_series_writer *w, struct ni_series_set *of, const struct ni_set *s,
                      struct ni_reading *r, int64_t now) {
  struct truth *t = &truth[n_truth];
  const struct ni_series_sweep sweep = {
      .real_ns = now + INT64_C(1700000000) * SECOND, .mono_ns = now, .ns = 1000, .missed = n_truth % 7 == 3};
  assert_int_equal(ni_series_put(w, of, s, r, &sweep), 0);
  *t = (struct truth){.set_sn = of->set_sn, .missed = sweep.missed, .n = s->n_counters};
  memcpy(t->r, r, s->n_counters * sizeof *r);
  snprintf(t->first, sizeof t->first, "%s", s->counter[0].name);
  n_truth++;
}

static void move(struct ni_reading *r, const struct ni_set *s, int64_t now) {
  for (size_t i = 0; i < s->n_counters; i++) {
    r[i].mono_ns = now + (int64_t)s->counter[i].entity * 5000;
    r[i].real_ns = r[i].mono_ns + INT64_C(1700000000) * SECOND;
    r[i].state = NI_READ_OK;
    switch (rnd() % 9000) {
      case 0:
        r[i].value = rnd();
        break; /* anything, of 64 bits */
      case 1:
        r[i].value = 0;
        break; /* a reset */
      case 2:
        r[i].value = UINT64_MAX;
        break;
      case 3:
      case 10:
      case 11:
      case 12:
      case 13:
        r[i].state = NI_READ_UNREADABLE;
        break;
      case 4:
        r[i].value = (r[i].value + (UINT64_C(1) << 56) - 5) % (UINT64_C(1) << 56);
        break;
      case 5:
        r[i].value += UINT64_C(1) << 63;
        break; /* the one difference that has no number */
      default:
        r[i].value += rnd() % 3 ? 0 : rnd() % 100000;
    }
  }
}

/* ---- reading ---- */

struct seen {
  size_t samples, faults, wrong;
  uint64_t last_sn;
  char what[128];
};

static int sample(void *arg, const struct ni_series_sample *s) {
  struct seen *x = arg;
  const struct truth *t = &truth[s->sample_sn];
  assert_true(s->sample_sn < n_truth);
  assert_int_equal(s->set_sn, t->set_sn);
  assert_int_equal(s->set->n_counters, t->n);
  assert_int_equal(s->missed, t->missed);
  assert_string_equal(s->set->counter[0].name, t->first);
  for (size_t i = 0; i < t->n; i++) {
    const struct ni_reading *a = &s->reading[i], *b = &t->r[i];
    /* A step of 2^63 has no number: it is not there, and the next one is right again. */
    if (a->state != b->state)
      x->wrong += b->state != NI_READ_OK;
    else if (b->state == NI_READ_OK)
      x->wrong += a->value != b->value || a->mono_ns != b->mono_ns || a->real_ns != b->real_ns;
  }
  x->samples++;
  x->last_sn = s->sample_sn;
  return 0;
}

static int fault(void *arg, uint64_t line_no, const char *what) {
  struct seen *x = arg;
  (void)line_no;
  x->faults++;
  snprintf(x->what, sizeof x->what, "%s", what);
  return 0;
}

static struct seen read_back(const char *from) {
  struct seen x = {0};
  struct ni_series_end end;
  assert_int_equal(
      ni_series_read(from, &(struct ni_series_to){.arg = &x, .sample = sample, .fault = fault}, &end), 0);
  assert_int_equal(end.samples, x.samples);
  assert_int_equal(end.faults, x.faults);
  return x;
}

/* The file as lines. */
static char **lines;
static size_t n_lines;

static int write_all(void **unused) {
  (void)unused;
  struct ni_set set[3];
  struct ni_series_set sampled = {.interval_ns = SECOND}, full = {0};
  struct ni_series_writer *w;
  char why[256], command[512], *text = NULL;
  size_t cap = 0;
  assert_non_null(mkdtemp(dir));
  truth = calloc(SAMPLES + 16, sizeof *truth);
  struct ni_reading *r = calloc(MOST, sizeof *r), *all = calloc(MOST, sizeof *all);
  fill(&set[0], 8, 40, "a");
  fill(&set[1], 8, 41, "a");      /* a counter more each */
  fill(&set[2], 2, 900, "every"); /* more than one line holds */
  assert_int_equal(ni_series_create(&w, dir, why, sizeof why), 0);
  snprintf(path, sizeof path, "%s", ni_series_path(w));
  move(all, &set[2], SECOND);
  write_one(w, &full, &set[2], all, SECOND);
  for (int i = 0; i < SAMPLES; i++) {
    const struct ni_set *s = &set[i >= 100 && i < 150];
    int64_t now = (int64_t)(i + 1) * SECOND;
    move(r, s, now);
    write_one(w, &sampled, s, r, now);
    if (i % 10 == 9)
      assert_int_equal(ni_series_flush(w), 0);
  }
  move(all, &set[2], 400 * (int64_t)SECOND);
  write_one(w, &full, &set[2], all, 400 * (int64_t)SECOND);
  assert_int_equal(ni_series_close(w), 0);
  for (int i = 0; i < 3; i++)
    ni_set_free(&set[i]);
  ni_series_set_free(&sampled);
  ni_series_set_free(&full);
  free(r);
  free(all);
  snprintf(command, sizeof command, "zcat '%s'", path);
  FILE *f = popen(command, "r");
  for (; getline(&text, &cap, f) > 0; n_lines++) {
    lines = realloc(lines, (n_lines + 1) * sizeof *lines);
    lines[n_lines] = strdup(text);
  }
  pclose(f);
  free(text);
  return 0;
}

static int clean(void **unused) {
  (void)unused;
  char command[256];
  snprintf(command, sizeof command, "rm -rf '%s'", dir);
  for (size_t i = 0; i < n_lines; i++)
    free(lines[i]);
  free(lines);
  free(truth);
  return system(command);
}

/* ---- tests ---- */

static void what_is_read_is_what_was_written(void **unused) {
  (void)unused;
  struct seen x = read_back(path);
  assert_int_equal(x.samples, n_truth);
  assert_int_equal(x.faults, 0);
  assert_int_equal(x.wrong, 0);
}

/* The file with other lines: which ones say as which. */
static struct seen read_lines(const size_t *which, size_t n) {
  char other[300];
  snprintf(other, sizeof other, "%s/other.jsonl", dir);
  FILE *f = fopen(other, "w");
  for (size_t i = 0; i < n; i++)
    fputs(lines[which[i]], f);
  fclose(f);
  return read_back(other);
}

static void each_line_that_is_lost_is_told_and_spoils_nothing(void **unused) {
  (void)unused;
  size_t *which = calloc(n_lines + 1, sizeof *which);
  for (size_t lost = 0; lost < n_lines; lost += 1 + rnd() % 5) {
    size_t n = 0;
    for (size_t i = 0; i < n_lines; i++)
      if (i != lost)
        which[n++] = i;
    struct seen x = read_lines(which, n);
    assert_int_equal(x.wrong, 0);
    /* A name that is said again is no loss; neither is the very last line. */
    bool again = strstr(lines[lost], "\"counter_names\"") && x.samples == n_truth;
    if (!again && !x.faults && x.last_sn == n_truth - 1)
      fail_msg("line %zu is gone, and nobody says so: %.600s", lost, lines[lost]);
    assert_true(x.samples >= n_truth - 170);
  }
  free(which);
}

static void lines_in_another_order_are_told_and_spoil_nothing(void **unused) {
  (void)unused;
  size_t *which = calloc(n_lines + 1, sizeof *which);
  for (int round = 0; round < 100; round++) {
    for (size_t i = 0; i < n_lines; i++)
      which[i] = i;
    for (int k = 0; k < 20; k++) {
      size_t a = rnd() % n_lines, b = rnd() % n_lines, c = which[a];
      which[a] = which[b];
      which[b] = c;
    }
    struct seen x = read_lines(which, n_lines);
    assert_int_equal(x.wrong, 0);
    assert_true(x.faults > 0);
  }
  free(which);
}

static int count(void *arg, const struct ni_series_sample *s) {
  uint64_t sum = 0;
  for (size_t i = 0; i < s->set->n_counters; i++)
    sum += s->reading[i].value + strlen(s->set->counter[i].name);
  ((struct seen *)arg)->samples += sum != 1;
  return 0;
}

/* Bytes that anybody may have written: nothing crashes, and no sample has a value that is none. */
static void damage_is_survived(void **unused) {
  (void)unused;
  char other[300];
  snprintf(other, sizeof other, "%s/other.jsonl", dir);
  for (int round = 0; round < 200; round++) {
    FILE *f = fopen(other, "w");
    for (size_t i = 0; i < n_lines && i < 120; i++) {
      char *line = strdup(lines[i]);
      if (rnd() % 8 == 0) { /* a number in the record becomes another one */
        char *at = strstr(line, rnd() % 2 ? "\"first\":" : rnd() % 2 ? "\"entity\":" : "\"n_counters\":");
        if (at && (at = strchr(at, ':')))
          at[1] = (char)('0' + rnd() % 10);
      }
      fputs(line, f);
      free(line);
    }
    fclose(f);
    struct ni_series_end end;
    struct seen x = {0};
    const struct ni_series_to to = {.arg = &x, .sample = count, .fault = fault};
    assert_int_equal(ni_series_read(other, &to, &end), 0);
  }
}

/* Two files in one: both have a set 0, and the second one's has more counters. */
struct pairs {
  unsigned sets, pairs;
  size_t counters;
};
static int pairs_set(void *arg, const char *host, const struct ni_set *s) {
  struct pairs *p = arg;
  (void)host;
  p->sets++;
  p->counters = s->n_counters;
  return 0;
}
static int pairs_pair(void *arg, const struct ni_series_sample *after, const struct ni_reading *before) {
  struct pairs *p = arg;
  assert_int_equal(after->set->n_counters, p->counters); /* of the set that was said before */
  for (size_t i = 0; i < p->counters; i++)
    assert_int_equal(after->reading[i].value - before[i].value, 10);
  p->pairs++;
  return 0;
}
static void a_set_of_the_same_number_is_another_one(void **unused) {
  (void)unused;
  static const char head[] =
      "{\"header\":{\"id\":\"0x0\",\"rank\":-1,\"n_ranks\":0,\"nnodes\":0},\"metadata\":{\"dump_timestamp_"
      "us\":1,\"hostname\":\"n\",\"pid\":1}";
  struct pairs p = {0};
  struct ni_series_end end;
  char name[300];
  snprintf(name, sizeof name, "%s/two-counters-1.jsonl", dir);
  FILE *f = fopen(name, "w");
  assert_non_null(f);
  for (unsigned set = 0; set < 2; set++) {
    unsigned n = set ? 30 : 1;
    fprintf(f,
            "%s,\"counter_names\":{\"set_sn\":0,\"interval_ns\":1000000000,\"entity\":0,\"n_entities\":1,"
            "\"source\":\"eth\","
            "\"name\":\"e\",\"first\":0,\"n_counters\":%u,\"metrics\":[",
            head, n);
    for (unsigned i = 0; i < n; i++)
      fprintf(f, "%s{\"name\":\"c%u_%u\",\"width\":64}", i ? "," : "", set, i);
    fprintf(f, "]}}\n");
    for (unsigned sample = 0; sample < 3; sample++) {
      fprintf(f,
              "%s,\"counters\":{\"set_sn\":0,\"sample_sn\":%u,\"realtime_ns\":%u000000000,\"monotonic_ns\":%"
              "u000000000,\"sweep_ns\":1,"
              "\"values\":[",
              head, sample, 1790000000 + 10 * set + sample, 1 + 10 * set + sample);
      for (unsigned i = 0; i < n; i++)
        fprintf(f, "%s%u", i ? "," : "", 10 * sample + 1000 * set);
      fprintf(f, "]}}\n");
    }
  }
  assert_int_equal(fclose(f), 0);
  assert_int_equal(ni_series_pairs(name, &(struct ni_series_pairs){&p, pairs_set, pairs_pair}, &end), 0);
  unlink(name);
  assert_true(end.samples == 6 && p.sets == 2 && p.pairs == 4);
}

static void a_file_that_is_gone_is_told(void **unused) {
  (void)unused;
  struct ni_series_writer *w;
  struct ni_series_set of = {.interval_ns = SECOND};
  struct ni_set set;
  char why[256], file[256];
  struct ni_reading r[80] = {{.state = 0}};
  fill(&set, 2, 40, "b");
  assert_int_equal(ni_series_create(&w, dir, why, sizeof why), 0);
  snprintf(file, sizeof file, "%s", ni_series_path(w));
  n_truth = 0;
  for (int i = 0; i < 50; i++) {
    move(r, &set, (int64_t)(i + 1) * SECOND);
    write_one(w, &of, &set, r, (int64_t)(i + 1) * SECOND);
  }
  assert_int_equal(ni_series_flush(w), 0);
  /* The folder goes: told, and nothing else happens. */
  move(r, &set, 51 * (int64_t)SECOND);
  write_one(w, &of, &set, r, 51 * (int64_t)SECOND);
  char kept[300];
  snprintf(kept, sizeof kept, "%s.kept", file);
  assert_int_equal(link(file, kept), 0);
  assert_int_equal(ni_series_flush(w), 0);
  unlink(file);
  unlink(kept);
  move(r, &set, 52 * (int64_t)SECOND);
  write_one(w, &of, &set, r, 52 * (int64_t)SECOND);
  assert_int_equal(ni_series_flush(w), -ESTALE);
  assert_int_equal(ni_series_close(w), -ESTALE);
  ni_series_set_free(&of);
  ni_set_free(&set);
}

/* Ten minutes of 8 NICs x 60 counters; so many bytes would an hour take. Rates from 1 to 10^7 a second, each
 * sample half to one and a half of that: bursts, whose digits nothing foretells. */
static double an_hour(unsigned one_in) {
  struct ni_series_writer *w;
  struct ni_series_set of = {.interval_ns = SECOND};
  struct ni_set set;
  struct stat st;
  char why[256];
  struct ni_reading r[480] = {{.state = 0}};
  uint64_t rate[480];
  state = 88172645463325252u;
  fill(&set, 8, 60, "hni_sts_counter");
  for (int i = 0; i < 480; i++) {
    rate[i] = 1;
    for (uint64_t k = rnd() % 8; k > 0; k--)
      rate[i] *= 10;
    rate[i] = i % (int)one_in ? 0 : rate[i] * (1 + rnd() % 9);
    r[i].value = rnd() >> 20;
  }
  assert_int_equal(ni_series_create(&w, dir, why, sizeof why), 0);
  for (int t = 1; t <= 600; t++) {
    const struct ni_series_sweep sweep = {
        INT64_C(1790000000) * SECOND + t * (int64_t)SECOND + (int64_t)(rnd() % 99999), t * (int64_t)SECOND,
        700000 + rnd() % 99999, 0};
    for (int i = 0; i < 480; i++) {
      r[i].value += rate[i] / 2 + (rate[i] ? rnd() % (rate[i] + 1) : 0);
      r[i].mono_ns = sweep.mono_ns + i / 60 * 90000 + (int64_t)(rnd() % 9000);
    }
    assert_int_equal(ni_series_put(w, &of, &set, r, &sweep), 0);
    if (t % 10 == 0)
      assert_int_equal(ni_series_flush(w), 0);
  }
  assert_int_equal(stat(ni_series_path(w), &st), 0);
  assert_int_equal(ni_series_close(w), 0);
  ni_series_set_free(&of);
  ni_set_free(&set);
  return (double)st.st_size * 6 / 1e6;
}

static void an_hour_takes_what_the_page_says(void **unused) {
  (void)unused;
  double half = an_hour(2), all = an_hour(1);
  printf("an hour of 480 counters: %.2f MB with half of them moving, %.2f MB with all\n", half, all);
  assert_true(half <= 3);
  assert_true(all <= 6);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_read_is_what_was_written),
                                     cmocka_unit_test(each_line_that_is_lost_is_told_and_spoils_nothing),
                                     cmocka_unit_test(lines_in_another_order_are_told_and_spoil_nothing),
                                     cmocka_unit_test(damage_is_survived),
                                     cmocka_unit_test(a_set_of_the_same_number_is_another_one),
                                     cmocka_unit_test(a_file_that_is_gone_is_told),
                                     cmocka_unit_test(an_hour_takes_what_the_page_says)};
  return cmocka_run_group_tests(tests, write_all, clean);
}
