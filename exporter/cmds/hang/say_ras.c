#include "say_ras.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/safe_text.h"
#include "say.h"
#include "words.h"

#define NAMED 4    /* ranks and communicators that are told one by one */
#define TOLD 8     /* differences and communicators that make no sense */
#define LISTED 256 /* in JSON: troubles, and ranks of each */

static const char limits[] =
    "RAS counts collectives that were launched, not those that have finished; it does not count sends and "
    "receives, copy engine, RMA, and graphs captured without KernelCh events: who is behind may itself "
    "wait in one of these";

const char *ni_hang_ras_place(const struct ni_hang_ras *r) {
  const char *where = r->where[r->n ? r->newest : 0];
  return where && *where ? where : "localhost:" NI_RAS_PORT;
}

/* ---- ranks ---- */

/* What a rank of a trouble is told for. */
enum group { BEHIND, UNLIKE, DEAD, UNRESPONSIVE, ABSENT, ERRORS, ABORTS, STARTING, GROUPS };
static const char *const group_names[GROUPS] = {"behind",       "other_calls", "dead",     "unresponsive",
                                                "not_a_member", "async_error", "aborting", "initializing"};

static bool is_in(const struct ni_ras_trouble *t, const struct ni_ras_rank *x, enum group g) {
  bool here = x->here == NI_RAS_HERE;
  switch (g) {
    case BEHIND:
      return ni_ras_is_behind(t, x);
    case UNLIKE:
      return ni_ras_is_unlike(t, x);
    case DEAD:
      return x->here == NI_RAS_DEAD;
    case UNRESPONSIVE:
      return x->here == NI_RAS_UNRESPONSIVE;
    case ABSENT:
      return x->here == NI_RAS_ABSENT;
    case ERRORS:
      return here && x->async_error > 0 && x->async_error != NI_RAS_IN_PROGRESS;
    case ABORTS:
      return here && x->abort;
    default:
      return here && x->init_state > 0;
  }
}

static size_t count_in_group(const struct ni_ras_trouble *t, enum group g) {
  const size_t n[GROUPS] = {
      t->behind, t->unlike, t->in[NI_RAS_DEAD], t->in[NI_RAS_UNRESPONSIVE], t->in[NI_RAS_ABSENT],
      t->errors, t->aborts, t->starting};
  return n[g];
}

static void say_one(FILE *f, const struct ni_ras_rank *x) {
  ni_say(f, "rank %d", x->rank);
  if (*x->host && x->pid >= 0)
    ni_say(f, " (%s, pid %" PRId64 ")", x->host, x->pid);
  else if (*x->host)
    ni_say(f, " (%s)", x->host);
}

/* Few by name, many as ranges. */
static void say_group(FILE *f, const struct ni_ras *r, const struct ni_ras_trouble *t, enum group g) {
  size_t n = count_in_group(t, g), said = 0;
  struct ni_hang_crowd c = ni_hang_crowd_new(n > NAMED ? n : 0, "rank", "ranks");
  for (size_t k = t->comm->first; k < t->comm->first + t->comm->n; k++) {
    const struct ni_ras_rank *x = &r->rank[k];
    if (!is_in(t, x, g))
      continue;
    if (n > NAMED && c.who && c.n < n)
      c.who[c.n++] = (struct ni_hang_who){x->rank, *x->host ? x->host : NULL};
    if (n > NAMED)
      continue;
    if (said)
      fputs(said + 1 == n ? " and " : ", ", f);
    say_one(f, x);
    said++;
  }
  if (c.n)
    ni_hang_say_crowd(f, &c);
  free(c.who);
}

/* ---- counts ---- */

/* Says what a group has launched, of functions in which it differs from most: "AllReduce 1,203". */
static void say_counts(FILE *f, const struct ni_ras *r, const struct ni_ras_trouble *t, enum group g) {
  const char *sep = "";
  for (size_t i = 0; i < r->n_funcs; i++) {
    uint64_t least = UINT64_MAX, greatest = 0, most = t->most->count[i];
    for (size_t k = t->comm->first; k < t->comm->first + t->comm->n; k++) {
      const struct ni_ras_rank *x = &r->rank[k];
      if (!is_in(t, x, g))
        continue;
      if (x->count[i] < least)
        least = x->count[i];
      if (x->count[i] > greatest)
        greatest = x->count[i];
    }
    if (least == most && greatest == most)
      continue;
    ni_say(f, "%s%s %s", sep, r->func[i], NI_COUNT(least));
    if (greatest != least)
      ni_say(f, " to %s", NI_COUNT(greatest));
    ni_say(f, ", %s %s", t->here - t->behind - t->unlike == 1 ? "the other" : "the others", NI_COUNT(most));
    sep = "; ";
  }
}

static void say_comm(FILE *f, const struct ni_ras_comm *c) {
  ni_say(f, "communicator 0x%" PRIx64 " (%s %s)", c->hash, NI_COUNT(c->size),
         ni_plural((uint64_t)c->size, "rank", "ranks"));
}

static void say_errors(FILE *f, const struct ni_ras *r, const struct ni_ras_trouble *t) {
  for (size_t k = t->comm->first, said = 0; k < t->comm->first + t->comm->n && said < 1; k++)
    if (is_in(t, &r->rank[k], ERRORS)) {
      ni_say(f, " (ncclResult_t %d)", r->rank[k].async_error);
      said++;
    }
}

/*
 * "communicator 0xa1 (8 ranks): rank 3 (10.0.0.1, pid 7) is behind: AllReduce 1,203, the others 1,204; rank 5
 * (...) is dead by RAS"
 */
static void say_trouble(FILE *f, const struct ni_ras *r, const struct ni_ras_trouble *t) {
  static const struct {
    enum group g;
    const char *one, *many;
  } says[] = {{DEAD, " is dead", " are dead"},
              {UNRESPONSIVE, " does not answer RAS", " do not answer RAS"},
              {BEHIND, " is behind", " are behind"},
              {UNLIKE, " has launched others", " have launched others"},
              {ERRORS, " reports an error", " report errors"},
              {ABORTS, " aborts", " abort"},
              {ABSENT, " has no such communicator (any more, or yet)",
               " have no such communicator (any more, or yet)"},
              {STARTING, " is still in its init", " are still in their init"}};
  const char *sep = ": ";
  say_comm(f, t->comm);
  for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
    size_t n = count_in_group(t, says[i].g);
    if (!n)
      continue;
    ni_put_text(f, sep);
    say_group(f, r, t, says[i].g);
    ni_put_text(f, ni_plural(n, says[i].one, says[i].many));
    if (says[i].g == ERRORS)
      say_errors(f, r, t);
    if (says[i].g == BEHIND || says[i].g == UNLIKE)
      say_counts((fputs(": ", f), f), r, t, says[i].g);
    sep = "; ";
  }
  if (t->consequence)
    fputs(" (behind in it because of another)", f);
}

/* ---- the sentence ---- */

static void say_job(FILE *f, const struct ni_ras_verdict *v) {
  ni_say(f, "%s %s in %s %s", NI_COUNT(v->processes), ni_plural(v->processes, "process", "processes"),
         NI_COUNT(v->comms), ni_plural(v->comms, "communicator", "communicators"));
}

/* The first one, and how many more there are. */
static void say_first(FILE *f, const struct ni_ras_verdict *v) {
  size_t more = 0;
  NI_EACH(const struct ni_ras_trouble, t, v->trouble + 1, v->n - 1) more += ni_ras_is_wait(t);
  say_trouble(f, &v->look->ras, v->trouble);
  if (more)
    ni_say(f, "; and %s more %s", NI_COUNT(more), ni_plural(more, "communicator", "communicators"));
}

static void say_still(FILE *f, const struct ni_ras_trouble *t) {
  if (!t->still_ns)
    return;
  fputs("; none of its processes has launched anything for ", f);
  ni_hang_say_span(f, t->still_ns);
}

/* saved: from files, so nobody can ask again. */
static void say_cannot_tell(FILE *f, const struct ni_ras_verdict *v, bool saved) {
  bool wait = v->n && ni_ras_is_wait(v->trouble);
  if (v->comms == 0) {
    ni_say(f, "none of %s %s that RAS knows makes sense", NI_COUNT(v->odd),
           ni_plural(v->odd, "communicator", "communicators"));
    return;
  }
  if (wait) {
    say_first(f, v);
    if (v->apart_ns && !v->trouble->still_ns)
      fputs("; not all of its processes stand still", f);
    say_still(f, v->trouble);
  } else {
    ni_say(f, "all that have answered have launched the same, ");
    say_job(f, v);
    if (v->apart_ns && !v->moved) {
      fputs(", and nothing for ", f);
      ni_hang_say_span(f, v->still_ns);
      fputs(": a job that hangs and one that is idle look alike to RAS", f);
    }
  }
  if (v->apart_ns && v->moved) {
    ni_say(f, "; %s of %s processes launched something within ", NI_COUNT(v->moved), NI_COUNT(v->processes));
    ni_hang_say_span(f, v->apart_ns);
  }
  if (!v->apart_ns)
    fputs(saved ? "; that was one look: whether it stands still only a second one tells (a second --ras=FILE)"
                : "; that was one look: whether it stands still only a second one tells (--confirm)",
          f);
}

void ni_hang_ras_say(FILE *f, const struct ni_hang_ras *r) {
  const struct ni_ras_verdict *v = &r->v;
  ni_put_text(f, v->answer == NI_HANG_NO_DATA_AT_ALL ? "CANNOT TELL" : ni_hang_words_of(v->answer)->head);
  if (v->answer == NI_HANG_NOT_YET) {
    fputs(" (a hang from ", f);
    ni_hang_say_span(f, v->limit_ns);
    fputs(" on)", f);
  }
  fputs(": ", f);
  switch (v->answer) {
    case NI_HANG_LIKELY:
    case NI_HANG_NOT_YET:
      say_first(f, v);
      say_still(f, v->trouble);
      return;
    case NI_HANG_NO_HANG:
      fputs("all of ", f);
      say_job(f, v);
      fputs(" launched something within ", f);
      ni_hang_say_span(f, v->apart_ns);
      return;
    case NI_HANG_NO_DATA_AT_ALL:
      fputs("RAS knows of no communicator", f);
      return;
    default:
      say_cannot_tell(f, v, r->asked_ns == 0);
  }
}

/* ---- beside the plugin ---- */

/* "rank 3 of dp0 (node-a)" */
static void say_member(FILE *f, const struct ni_ras_difference *d) {
  ni_say(f, "rank %d of ", d->rank->rank);
  ni_hang_say_comm(f, d->member);
  if (*d->rank->host)
    ni_say(f, " (%s)", d->rank->host);
}

static void say_difference(FILE *f, const struct ni_ras_difference *d) {
  say_member(f, d);
  if (d->what == NI_RAS_LIVES)
    fputs(": RAS calls it dead, and its process is alive", f);
  else if (d->what == NI_RAS_DIED)
    fputs(": RAS still shows it, and its process is dead", f);
  else
    ni_say(f, ": %s %s by RAS, %s by the plugin", d->func, NI_COUNT(d->by_ras), NI_COUNT(d->by_plugin));
}

static void say_agreement(FILE *f, const struct ni_hang_ras *r) {
  const struct ni_ras_agreement *a = &r->agreement;
  if (a->comms == 0) {
    ni_say(f, "RAS and the plugin have no communicator in common: are they of one job?");
    return;
  }
  if (a->compared == 0)
    ni_say(f, "RAS and the plugin know %s %s of %s %s in common, and no counts of them", NI_COUNT(a->ranks),
           ni_plural(a->ranks, "rank", "ranks"), NI_COUNT(a->comms),
           ni_plural(a->comms, "communicator", "communicators"));
  else if (a->n_differences == 0)
    ni_say(f, "RAS and the plugin agree on what %s %s of %s %s launched", NI_COUNT(a->compared),
           ni_plural(a->compared, "rank", "ranks"), NI_COUNT(a->comms),
           ni_plural(a->comms, "communicator", "communicators"));
  else
    ni_say(f, "RAS and the plugin differ in %s %s; %s of %s ranks have the same counts",
           NI_COUNT(a->n_differences), ni_plural(a->n_differences, "place", "places"), NI_COUNT(a->agree),
           NI_COUNT(a->compared));
  if (a->n_differences && !r->asked_ns)
    fputs(" (a saved answer may be of another moment)", f);
  if (a->ranks_only_ras)
    ni_say(f, "; of %s more only RAS tells", NI_COUNT(a->ranks_only_ras));
  if (a->comms_only_ras)
    ni_say(f, "; %s %s only RAS knows", NI_COUNT(a->comms_only_ras),
           ni_plural(a->comms_only_ras, "communicator", "communicators"));
  if (a->comms_only_plugin)
    ni_say(f, "; %s %s only the plugin knows", NI_COUNT(a->comms_only_plugin),
           ni_plural(a->comms_only_plugin, "communicator", "communicators"));
}

static size_t count_told_differences(const struct ni_ras_agreement *a, bool all) {
  size_t most = all ? NI_RAS_DIFFERENCES : TOLD;
  return a->n_differences < most ? a->n_differences : most;
}

static void print_agreement(const struct ni_hang_ras *r, bool all) {
  size_t n = count_told_differences(&r->agreement, all);
  say_agreement(stdout, r);
  ni_say(stdout, "\n");
  for (size_t i = 0; i < n; i++) {
    ni_say(stdout, "  ");
    say_difference(stdout, &r->agreement.difference[i]);
    ni_say(stdout, "\n");
  }
  if (n < r->agreement.n_differences)
    ni_say(stdout, "  and %s more\n", NI_COUNT(r->agreement.n_differences - n));
}

/* ---- terminal ---- */

static void print_source(const struct ni_hang_ras *r) {
  const struct ni_ras *ras = &r->now.ras;
  ni_say(stdout, "RAS of %s", ni_hang_ras_place(r));
  if (*ras->nccl_version)
    ni_say(stdout, ", NCCL %s", ras->nccl_version);
  if (*ras->timestamp)
    ni_say(stdout, ", at %s (its local time)", ras->timestamp);
  if (ras->collection_s >= 0)
    ni_say(stdout, ", gathered in %.1f s", ras->collection_s);
  if (ras->timeouts > 0)
    ni_say(stdout, " with %s %s", NI_COUNT(ras->timeouts),
           ni_plural((uint64_t)ras->timeouts, "timeout", "timeouts"));
  if (ras->mended)
    ni_say(stdout, "; its text was no JSON and was mended");
  ni_say(stdout, "\n");
}

static void print_odd(const struct ni_hang_ras *r, bool all) {
  const struct ni_ras *ras = &r->now.ras;
  size_t told = 0, most = all ? LISTED : NAMED;
  if (!r->v.odd)
    return;
  ni_say(stdout, "%s %s no sense and %s left out:", NI_COUNT(r->v.odd),
         ni_plural(r->v.odd, "communicator makes", "communicators make"), ni_plural(r->v.odd, "is", "are"));
  for (size_t i = 0; i < ras->n_comms && told < most; i++)
    if (ras->comm[i].odd)
      ni_say(stdout, "%s 0x%" PRIx64 ": %s", told++ ? ";" : "", ras->comm[i].hash, ras->comm[i].odd);
  ni_say(stdout, "%s\n", told < r->v.odd ? "; ..." : "");
}

void ni_hang_ras_print(const struct ni_hang_ras *r, bool alone, bool all) {
  size_t most = all ? LISTED : NAMED;
  if (!r->answered) {
    ni_say(stdout, "RAS: %s\n", r->why);
    return;
  }
  if (!alone)
    ni_say(stdout, "\nRAS alone: ");
  ni_hang_ras_say(stdout, r);
  ni_say(stdout, "\n");
  /* The first trouble is in the sentence where it is a wait. */
  for (size_t i = r->v.n && ni_ras_is_wait(r->v.trouble); i < r->v.n && i < most; i++) {
    ni_say(stdout, "  ");
    say_trouble(stdout, &r->now.ras, &r->v.trouble[i]);
    ni_say(stdout, "\n");
  }
  if (r->v.n > most)
    ni_say(stdout, "  and %s more\n", NI_COUNT(r->v.n - most));
  print_odd(r, all);
  if (r->compared)
    print_agreement(r, all);
  print_source(r);
  ni_say(stdout, "%s\n", limits);
}

/* ---- JSON ---- */

static void write_json_said(struct ni_json *j, const char *key, char *text) {
  ni_json_text(j, key, text ? text : "");
  free(text);
}

static void write_json_rank(struct ni_json *j, const struct ni_ras *r, const struct ni_ras_trouble *t,
                            const struct ni_ras_rank *x) {
  NI_JSON_OBJECT (j, NULL) {
    ni_json_i64(j, "rank", x->rank);
    ni_json_text(j, "host", *x->host ? x->host : NULL);
    if (x->pid >= 0)
      ni_json_i64(j, "pid", x->pid);
    else
      ni_json_text(j, "pid", NULL);
    ni_json_i64(j, "cuda_dev", x->cuda_dev);
    NI_JSON_ARRAY (j, "is")
      for (int g = 0; g < GROUPS; g++)
        if (is_in(t, x, (enum group)g))
          ni_json_text(j, NULL, group_names[g]);
    if (is_in(t, x, ERRORS))
      ni_json_i64(j, "async_error", x->async_error);
    if (x->counted)
      NI_JSON_OBJECT (j, "launched")
        for (size_t i = 0; i < r->n_funcs; i++)
          ni_json_u64(j, r->func[i], x->count[i]);
  }
}

static bool is_told(const struct ni_ras_trouble *t, const struct ni_ras_rank *x) {
  for (int g = 0; g < GROUPS; g++)
    if (is_in(t, x, (enum group)g))
      return true;
  return false;
}

static void write_json_trouble(struct ni_json *j, const struct ni_ras *r, const struct ni_ras_trouble *t) {
  char *text;
  size_t told = 0, left = 0;
  NI_JSON_OBJECT (j, NULL) {
    ni_json_hex_text(j, "hash", t->comm->hash);
    ni_json_i64(j, "n_ranks", t->comm->size);
    NI_HANG_SAID(text, say_trouble(f, r, t));
    write_json_said(j, "text", text);
    ni_json_bool(j, "hangs", t->hangs);
    ni_json_bool(j, "consequence", t->consequence);
    ni_json_u64(j, "still_for_s", t->still_ns / 1000000000u);
    NI_JSON_OBJECT (j, "count")
      for (int g = 0; g < GROUPS; g++)
        if (count_in_group(t, (enum group)g))
          ni_json_u64(j, group_names[g], count_in_group(t, (enum group)g));
    if (t->most)
      NI_JSON_OBJECT (j, "most_launched")
        for (size_t i = 0; i < r->n_funcs; i++)
          ni_json_u64(j, r->func[i], t->most->count[i]);
    NI_JSON_ARRAY (j, "ranks")
      for (size_t k = t->comm->first; k < t->comm->first + t->comm->n; k++) {
        if (!is_told(t, &r->rank[k]))
          continue;
        if (told == LISTED)
          left++;
        else {
          write_json_rank(j, r, t, &r->rank[k]);
          told++;
        }
      }
    ni_json_u64(j, "more_ranks", left);
  }
}

static void write_json_agreement(struct ni_json *j, const struct ni_hang_ras *r) {
  const struct ni_ras_agreement *a = &r->agreement;
  char *text;
  NI_JSON_OBJECT (j, "beside_the_plugin") {
    NI_HANG_SAID(text, say_agreement(f, r));
    write_json_said(j, "text", text);
    ni_json_u64(j, "communicators", a->comms);
    ni_json_u64(j, "ranks", a->ranks);
    ni_json_u64(j, "compared", a->compared);
    ni_json_u64(j, "agree", a->agree);
    ni_json_u64(j, "ranks_only_ras", a->ranks_only_ras);
    ni_json_u64(j, "communicators_only_ras", a->comms_only_ras);
    ni_json_u64(j, "communicators_only_plugin", a->comms_only_plugin);
    ni_json_u64(j, "n_differences", a->n_differences);
    NI_JSON_ARRAY (j, "differences")
      for (size_t i = 0; i < count_told_differences(a, true); i++) {
        NI_HANG_SAID(text, say_difference(f, &a->difference[i]));
        write_json_said(j, NULL, text);
      }
  }
}

static void write_json_counts(struct ni_json *j, const struct ni_hang_ras *r) {
  const struct ni_ras_verdict *v = &r->v;
  const struct ni_ras *ras = &r->now.ras;
  ni_json_text(j, "nccl_version", *ras->nccl_version ? ras->nccl_version : NULL);
  ni_json_text(j, "local_time", *ras->timestamp ? ras->timestamp : NULL);
  ni_json_f64(j, "collection_s", ras->collection_s >= 0 ? ras->collection_s : (double)__builtin_nan(""));
  if (ras->timeouts >= 0)
    ni_json_i64(j, "timeouts", ras->timeouts);
  ni_json_u64(j, "looks", v->apart_ns ? 2 : 1);
  ni_json_u64(j, "looks_apart_s", v->apart_ns / 1000000000u);
  ni_json_u64(j, "still_for_s", v->still_ns / 1000000000u);
  ni_json_u64(j, "communicators", v->comms);
  ni_json_u64(j, "odd_communicators", v->odd);
  ni_json_u64(j, "processes", v->processes);
  ni_json_u64(j, "moved", v->moved);
  ni_json_u64(j, "dead", v->in[NI_RAS_DEAD]);
  ni_json_u64(j, "unresponsive", v->in[NI_RAS_UNRESPONSIVE]);
}

void ni_hang_ras_json(struct ni_json *j, const struct ni_hang_ras *r) {
  char *text;
  NI_JSON_OBJECT (j, "ras") {
    ni_json_text(j, "source", ni_hang_ras_place(r));
    ni_json_text(j, "error", r->answered ? NULL : r->why);
    if (r->answered) {
      enum ni_hang_answer answer = r->v.answer == NI_HANG_NO_DATA_AT_ALL ? NI_HANG_CANNOT_TELL : r->v.answer;
      ni_json_text(j, "answer", ni_hang_words_of(answer)->answer);
      NI_HANG_SAID(text, ni_hang_ras_say(f, r));
      write_json_said(j, "sentence", text);
      ni_json_text(j, "limits", limits);
      write_json_counts(j, r);
      NI_JSON_ARRAY (j, "troubles")
        for (size_t i = 0; i < r->v.n && i < LISTED; i++)
          write_json_trouble(j, &r->now.ras, &r->v.trouble[i]);
      ni_json_u64(j, "more_troubles", r->v.n > LISTED ? r->v.n - LISTED : 0);
      if (r->compared)
        write_json_agreement(j, r);
    }
  }
}
