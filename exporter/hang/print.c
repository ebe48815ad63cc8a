#include "print.h"

#include <inttypes.h>
#include <stdlib.h>

#include "../json_out.h"
#include "say.h"

#define SHOWN 4 /* hangs shown without --all */

static const char *const lives[] = {"unknown", "alive", "dead", "left"};

static const struct ni_hang_process *process_of(const struct ni_hang_verdict *v, const struct ni_hang_view *w) {
  return &v->model->process[w->member->process];
}

/* Unix ns of the newest thing known of a rank, and how old that is by the newest thing known at all. */
static uint64_t age_s(const struct ni_hang_verdict *v, uint64_t ns) {
  return ns && v->now_ns > ns ? (v->now_ns - ns) / 1000000000u : 0;
}

static uint64_t known_ns(const struct ni_hang_verdict *v, const struct ni_hang_view *w) {
  return w->member->open_ns ? w->member->open_ns : process_of(v, w)->alive_ns;
}

/* What keeps the verdict from being certain, the i-th thing; malloc'ed, NULL: no more. */
static char *missing_text(const struct ni_hang_verdict *v, size_t i) {
  char *text = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&text, &n);
  bool more = f && ni_hang_say_missing(f, v, i);
  if (f) fclose(f);
  if (more) return text;
  free(text);
  return NULL;
}

/* ---- terminal ---- */

static void print_channels(uint64_t open) {
  const char *sep = " on channels ";
  for (int i = 0, end; i < 64; i = end) {
    for (end = i; end < 64 && (open >> end & 1); end++) {}
    if (end == i) {
      end++;
      continue;
    }
    if (end - i > 1) printf("%s%d-%d", sep, i, end - 1);
    else printf("%s%d", sep, i);
    sep = ", ";
  }
}

static void print_rank(const struct ni_hang_verdict *v, const struct ni_hang_view *w) {
  const struct ni_hang_process *p = process_of(v, w);
  int32_t g = ni_hang_global(v, w);
  if (g >= 0) printf("    rank %-6d", g);
  else printf("    of it %-5d", w->rank);
  printf(" %-20s pid %-8" PRId64 " %-12s", p->host, p->pid, ni_hang_where_name(w->where));
  if (w->op && (w->where == NI_HANG_INSIDE || w->where == NI_HANG_QUEUED || w->where == NI_HANG_GONE)) {
    printf(" %s", ni_hang_state_name(w->op->state));
    if (w->op->channels_open) print_channels(w->op->channels_open);
    printf(", for %" PRIu64 " s", age_s(v, w->op->enqueue_ns));
  }
  printf("; process %s, seen %" PRIu64 " s ago in %s\n", lives[p->life], age_s(v, known_ns(v, w)), p->file ? p->file : "nothing");
}

static void print_group(const struct ni_hang_verdict *v, const struct ni_hang_knot *k, enum ni_hang_where where, bool all) {
  size_t n = k->count[where];
  if (!n) return;
  printf("  %-13s %zu: ", ni_hang_where_name(where), n);
  ni_hang_say_ranks(stdout, v, k, where);
  printf("\n");
  size_t few = where == NI_HANG_FINISHED || where == NI_HANG_NOT_INVOLVED ? 0 : SHOWN;
  for (size_t i = 0, shown = 0; i < k->n && (all || shown < few); i++)
    if (k->view[i].where == where) {
      print_rank(v, &k->view[i]);
      shown++;
    }
}

static void print_knot(const struct ni_hang_verdict *v, const struct ni_hang_knot *k, bool all) {
  printf("\ncommunicator ");
  ni_hang_say_comm(stdout, k->any);
  printf(" (0x%" PRIx64 ", %d ranks): ", k->any->hash, k->any->n_ranks);
  if (k->kind == NI_KIND_COLL) {
    ni_hang_say_op(stdout, v, &k->op);
    printf(", %" PRIu64 " bytes", k->op.bytes);
  } else {
    printf("Send/Recv");
  }
  printf(", nothing has moved for %" PRIu64 " s%s\n", k->pending_ns / 1000000000u,
         !k->hangs ? " (no hang yet)" : k->root ? "" : " (a consequence)");
  if (k->has_last) {
    printf("  all have finished ");
    ni_hang_say_op(stdout, v, &k->last);
    printf("\n");
  }
  for (int w = NI_HANG_WHERE_COUNT - 1; w >= 0; w--) print_group(v, k, (enum ni_hang_where)w, all);
}

void ni_hang_print(const struct ni_hang_verdict *v, bool all) {
  const struct ni_hang_model *m = v->model;
  ni_hang_say(stdout, v);
  printf("\n");
  if (v->answer == NI_HANG_LIKELY) {
    for (size_t i = 0;; i++) {
      char *text = missing_text(v, i);
      if (!text) break;
      printf("%s%s", i ? "; " : "missing to be certain: ", text);
      free(text);
    }
    printf("\n");
  }
  if (v->n_hangs > v->n_roots) printf("%zu more communicators wait because of it\n", v->n_hangs - v->n_roots);
  for (size_t i = 0; i < v->n; i++)
    if (all || (v->knot[i].hangs && v->knot[i].root && i < SHOWN)) print_knot(v, &v->knot[i], all);
  if (v->blind)
    printf("\n%zu communicators run operations whose kernels NCCL does not show (symmetric memory, copy engine, Broadcast "
           "since 2.29): a hang inside one of those is not seen here\n", v->blind);
  if (m->unreadable && v->answer == NI_HANG_NO_HANG) {
    printf("%" PRIu64 " files could not be read, the first: %s\n", m->unreadable, m->first_bad ? m->first_bad : "");
  }
}

/* ---- JSON ---- */

typedef void (*say_fn)(FILE *f, const void *arg);

struct said {
  const struct ni_hang_verdict *v;
  const struct ni_hang_knot *k;
};

static void sentence(FILE *f, const void *arg) { ni_hang_say(f, arg); }

static void knot_text(FILE *f, const void *arg) {
  const struct said *s = arg;
  ni_hang_say_knot(f, s->v, s->k);
}

static void json_said(struct ni_json *j, const char *key, say_fn say, const void *arg) {
  char *text = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&text, &n);
  if (f) {
    say(f, arg);
    fclose(f);
  }
  ni_json_text(j, key, text);
  free(text);
}

static void json_missing(struct ni_json *j, const struct ni_hang_verdict *v) {
  ni_json_array(j, "missing");
  for (size_t i = 0;; i++) {
    char *text = missing_text(v, i);
    if (!text) break;
    ni_json_text(j, NULL, text);
    free(text);
  }
  ni_json_end_array(j);
}

static void json_op(struct ni_json *j, const char *key, const struct ni_hang_verdict *v, const struct ni_hang_op *op) {
  ni_json_object(j, key);
  ni_json_text(j, "func", ni_hang_text(v->model, op->func));
  ni_json_u64(j, "sn", op->sn);
  if (op->rec_sn != NI_HANG_NONE) ni_json_u64(j, "rec_sn", op->rec_sn);
  ni_json_u64(j, "bytes", op->bytes);
  if (op->datatype) ni_json_text(j, "datatype", ni_hang_text(v->model, op->datatype));
  if (op->root >= 0) ni_json_i64(j, op->kind == NI_KIND_P2P ? "peer" : "root", op->root);
  ni_json_end_object(j);
}

static void json_view(struct ni_json *j, const struct ni_hang_verdict *v, const struct ni_hang_view *w) {
  const struct ni_hang_process *p = process_of(v, w);
  int32_t g = ni_hang_global(v, w);
  ni_json_object(j, NULL);
  ni_json_i64(j, "rank", w->rank);
  if (g >= 0) ni_json_i64(j, "global_rank", g);
  else ni_json_text(j, "global_rank", NULL);
  ni_json_text(j, "hostname", p->host);
  ni_json_i64(j, "pid", p->pid);
  ni_json_text(j, "where", ni_hang_where_name(w->where));
  bool there = w->op && (w->where == NI_HANG_INSIDE || w->where == NI_HANG_QUEUED || w->where == NI_HANG_API_ONLY);
  if (there) {
    ni_json_text(j, "state", ni_hang_state_name(w->op->state));
    ni_json_u64(j, "since_s", age_s(v, w->op->enqueue_ns));
    ni_json_hex_text(j, "channels_open", w->op->channels_open);
    if (w->op->net_peer >= 0) ni_json_i64(j, "net_peer", w->op->net_peer);
    if (w->op->net_channel >= 0) ni_json_i64(j, "net_channel", w->op->net_channel);
  }
  if (w->waits_for >= 0) ni_json_i64(j, "waits_for", w->waits_for);
  if (w->op) json_op(j, "operation", v, w->op);
  ni_json_text(j, "process", lives[p->life]);
  ni_json_u64(j, "seen_s_ago", age_s(v, known_ns(v, w)));
  ni_json_bool(j, "black_box", p->has_box);
  ni_json_text(j, "file", p->file);
  ni_json_u64(j, "file_age_s", age_s(v, p->file_ns));
  ni_json_end_object(j);
}

static void json_knot(struct ni_json *j, const struct ni_hang_verdict *v, const struct ni_hang_knot *k) {
  static const struct {
    const char *name;
    size_t at;
  } flags[] = {{"function", offsetof(struct ni_hang_knot, call_mismatch)},
               {"size", offsetof(struct ni_hang_knot, size_mismatch)},
               {"datatype", offsetof(struct ni_hang_knot, type_mismatch)},
               {"root", offsetof(struct ni_hang_knot, root_mismatch)}};
  struct said s = {v, k};
  ni_json_object(j, NULL);
  ni_json_text(j, "comm_name", k->any->name);
  ni_json_hex_text(j, "hash", k->any->hash);
  ni_json_i64(j, "n_ranks", k->any->n_ranks);
  ni_json_text(j, "kind", k->kind == NI_KIND_P2P ? "p2p" : "coll");
  json_op(j, "operation", v, &k->op);
  if (k->has_last) json_op(j, "last_finished", v, &k->last);
  json_said(j, "text", knot_text, &s);
  ni_json_bool(j, "hangs", k->hangs);
  ni_json_bool(j, "root", k->root);
  ni_json_u64(j, "ring", k->ring);
  if (k->leads_to >= 0) ni_json_hex_text(j, "because_of", v->knot[k->leads_to].any->hash);
  ni_json_u64(j, "still_for_s", k->pending_ns / 1000000000u);
  ni_json_array(j, "mismatch");
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
    if (*((const bool *)((const char *)k + flags[i].at))) ni_json_text(j, NULL, flags[i].name);
  ni_json_end_array(j);
  ni_json_object(j, "count");
  for (int w = 0; w < NI_HANG_WHERE_COUNT; w++)
    if (k->count[w]) ni_json_u64(j, ni_hang_where_name((enum ni_hang_where)w), k->count[w]);
  ni_json_end_object(j);
  ni_json_array(j, "ranks");
  for (size_t i = 0; i < k->n; i++) json_view(j, v, &k->view[i]);
  ni_json_end_array(j);
  ni_json_end_object(j);
}

void ni_hang_print_json(const struct ni_hang_verdict *v) {
  static const char *const answers[] = {"no_hang", "likely", "certain"};
  const struct ni_hang_model *m = v->model;
  struct ni_json j;
  ni_json_begin(&j, stdout);
  ni_json_object(&j, NULL);
  ni_json_text(&j, "schema_version", "nccl-inspector-hang-1");
  ni_json_text(&j, "verdict", answers[v->answer]);
  json_said(&j, "sentence", sentence, v);
  json_missing(&j, v);
  ni_json_u64(&j, "hang_after_s", v->after_ns / 1000000000u);
  ni_json_u64(&j, "communicators", v->n_communicators);
  ni_json_u64(&j, "ranks", v->n_ranks);
  ni_json_u64(&j, "processes", m->n_processes);
  ni_json_u64(&j, "blind_communicators", v->blind);
  ni_json_u64(&j, "logs", m->files);
  ni_json_u64(&j, "black_boxes", m->boxes);
  ni_json_u64(&j, "bad_lines", m->bad_lines);
  ni_json_u64(&j, "unreadable", m->unreadable);
  ni_json_text(&j, "first_unreadable", m->first_bad);
  ni_json_array(&j, "waits");
  for (size_t i = 0; i < v->n; i++) json_knot(&j, v, &v->knot[i]);
  ni_json_end_array(&j);
  ni_json_end_object(&j);
  ni_json_finish(&j);
}
