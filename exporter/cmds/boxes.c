/*
 * nccl-inspector boxes: whose black boxes lie here, what is in them, since when, and how much room they take.
 *
 * Each is read with its owner's rights (as_user.h). Nothing is written.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/process/as_user.h"
#include "exporter/cli/command.h"
#include "exporter/base/text/json_fields.h"
#include "exporter/base/now.h"
#include "exporter/base/text/plural.h"
#include "exporter/input/box/box_decode.h"
#include "exporter/input/box/sources.h"
#include "exporter/input/parse/parse.h"
#include "exporter/model/who/who.h"

/* One box. Found out with its owner's rights, so root takes the texts for hostile. */
struct box_row {
  bool copy, recorded, elsewhere; /* elsewhere: of a job that was not asked for */
  struct ni_life_fact life;
  int64_t pid;
  uint64_t sign_ns; /* Unix ns of the process's last sign of life */
  uint64_t communicators, finished, in_flight;
  bool uncounted;     /* it left by itself, but had no time to count what is not in its log */
  uint64_t unwritten; /* what it could not write before it ended; with errno of the last try, 0 */
  int32_t error;
  char host[256], dir[4096], log[4096], job[64]; /* dir: of the log */
};

struct boxes {
  struct ni_inputs inputs;
  struct ni_box_sources sources;
  struct ni_box_passed passed;
  const char *box_dir;
  bool json;
  struct ni_json out;
  struct box_row *row; /* shared with whoever looks into the box */
  size_t n, failed;
  uint64_t bytes;
};

static int count_op(const struct ni_box_op *op, void *arg) {
  struct box_row *r = arg;
  r->finished += op->is == NI_BOX_SLOT_FINISHED;
  r->in_flight += op->is == NI_BOX_SLOT_IN_FLIGHT;
  return 0;
}

/*
 * The id of the batch system, from the process line in the log of the box. Stays empty if there is none. 0 or
 * -ENOMEM.
 */
static int find_job(struct box_row *r, const char *line) {
  struct ni_parser *p;
  struct ni_line l;
  char *copy = strdup(line);
  if (!copy || ni_parser_new(&p) < 0) {
    free(copy);
    return -ENOMEM;
  }
  size_t len = strlen(copy);
  const char *job = ni_parse_line(p, copy, len, len, &l) == NI_OK && l.kind == NI_LINE_PROCESS
      ? ni_job_id(&l.process)
      : NULL;
  snprintf(r->job, sizeof r->job, "%s", job ? job : "");
  ni_parser_free(p);
  free(copy);
  return 0;
}

static int read_box(const struct ni_box *b, void *arg) {
  const struct boxes *x = arg;
  struct box_row *r = x->row;
  const struct ni_box_header *h = ni_box_header(b);
  struct ni_box_log log;
  struct ni_box_comm c;
  r->copy = ni_box_is_copy(b);
  r->life = *ni_box_life_fact(b);
  bool exited = h->end == NI_BOX_END_EXITED;
  r->uncounted = exited && h->unwritten == NI_BOX_NOT_COUNTED;
  r->unwritten = exited && !r->uncounted ? h->unwritten : 0;
  r->error = h->unwritten_error;
  r->recorded = h->state == NI_BOX_LIVE;
  r->pid = h->pid;
  r->sign_ns = h->heartbeat_unix_ns > h->made_ns ? h->heartbeat_unix_ns : h->made_ns;
  snprintf(r->host, sizeof r->host, "%s", h->hostname);
  bool placed = ni_box_session(b, &log);
  r->elsewhere = !ni_box_asked_for(&x->sources, &x->inputs, placed ? log.dir : "");
  if (r->elsewhere)
    return 0;
  if (placed) {
    snprintf(r->dir, sizeof r->dir, "%s", log.dir);
    snprintf(r->log, sizeof r->log, "%s/%s", log.dir, log.file);
    if (find_job(r, log.line) < 0)
      return -ENOMEM;
  }
  for (size_t i = 0; r->recorded && ni_box_comm_at(b, i, &c); i++)
    r->communicators += c.phase != 0;
  return r->recorded ? ni_box_each_op(b, count_op, r) : 0;
}

static void print_box(struct boxes *x, const char *path, uint32_t owner, uint64_t bytes) {
  static const char *const lives[NI_LIFE_COUNT] = {"perhaps alive", "running", "dead", "ended"};
  const struct box_row *r = x->row;
  char size[32], age[32], reason[256];
  uint64_t now_ns = ni_now_ns(CLOCK_REALTIME), silent = now_ns > r->sign_ns ? now_ns - r->sign_ns : 0;
  enum ni_life known = (unsigned)r->life.life < NI_LIFE_COUNT ? r->life.life : NI_LIFE_UNKNOWN;
  const char *life = known == NI_LIFE_DEAD && r->life.end == NI_BOX_END_NOT_YET ? "killed" : lives[known];
  if (x->json) {
    static const struct ni_json_field fields[] = {NI_JSON(box_row, communicators), NI_JSON(box_row, finished),
                                                  NI_JSON(box_row, in_flight),
                                                  NI_JSON_FROM(ni_json_member_some, box_row, log, "log"),
                                                  NI_JSON_FROM(ni_json_member_some, box_row, job, "job_id")};
    struct ni_json *j = &x->out;
    ni_json_object(j, NULL);
    ni_json_text(j, "box", path);
    ni_json_u64(j, "uid", owner);
    ni_json_text(j, "hostname", r->host);
    ni_json_i64(j, "pid", r->pid);
    ni_json_text(j, "process", ni_life_name(known));
    ni_json_text(j, "why", ni_life_reason(&r->life, reason, sizeof reason));
    ni_json_text(j, "end", ni_life_end_name(r->life.end));
    if (r->uncounted)
      ni_json_text(j, "unwritten", NULL);
    else
      ni_json_u64(j, "unwritten", r->unwritten);
    ni_json_bool(j, "copy", r->copy);
    ni_json_u64(j, "age_ms", silent / 1000000);
    ni_json_u64(j, "bytes", bytes);
    NI_JSON_ALL(j, fields, r, NULL);
    ni_json_end_object(j);
    return;
  }
  ni_say(stdout, "%s\n  uid %u, %s pid %" PRId64 ", %s, last sign of it %s ago, takes %s%s\n", path, owner,
         r->host, r->pid, life, ni_duration_text((double)silent / 1e3, age), ni_bytes_text(bytes, size),
         r->copy ? ", a copy" : "");
  if (r->recorded)
    ni_say(stdout, "  %s %s, %s finished %s, %s in flight; log %s\n", NI_COUNT(r->communicators),
           ni_plural(r->communicators, "communicator", "communicators"), NI_COUNT(r->finished),
           ni_plural(r->finished, "operation", "operations"), NI_COUNT(r->in_flight),
           *r->log ? r->log : "not begun");
  else
    ni_say(stdout, "  nothing that is not in its log\n");
  if (r->uncounted)
    ni_say(stdout,
           "  it left by exit or return; how many finished operations are not in its log is not known: it "
           "could not count them\n");
  if (r->unwritten)
    ni_say(stdout, "  it left by exit or return and could not write %s finished %s%s%s\n",
           NI_COUNT(r->unwritten), ni_plural(r->unwritten, "operation", "operations"), r->error ? ": " : "",
           r->error ? strerror(r->error) : "");
}

static int list_boxes(struct boxes *x, const char *name) {
  const struct ni_files *f = &x->sources.boxes;
  int e = (x->row = ni_shared(sizeof *x->row))
      ? ni_box_sources_find(&x->sources, &x->inputs, x->box_dir, NULL)
      : -ENOMEM;
  for (size_t i = 0; e == 0 && i < f->n; i++) {
    struct ni_box_visit v = {
        .path = f->file[i].path, .named = x->sources.named, .keep = -1, .work = read_box, .arg = x};
    struct stat st;
    char why[512];
    *x->row = (struct box_row){0};
    int bad = ni_box_visit(&v, why, sizeof why);
    struct box_row *r = x->row;
    r->host[sizeof r->host - 1] = r->dir[sizeof r->dir - 1] = r->log[sizeof r->log - 1] =
        r->job[sizeof r->job - 1] = 0;
    if (bad == 0 && *r->dir)
      ni_box_sources_led(&x->sources, r->dir);
    if (bad == -ENOMEM)
      e = bad;
    else if (bad == 0 && r->elsewhere)
      x->passed.elsewhere++;
    else if (bad == 0 && lstat(v.path, &st) == 0) {
      x->n++;
      x->bytes += (uint64_t)st.st_blocks * 512;
      print_box(x, v.path, v.owner, (uint64_t)st.st_blocks * 512);
    } else if (x->sources.named || ni_box_passes(&x->passed, v.path, bad)) {
      x->failed++;
      ni_say(stderr, "%s: %s\n", v.path, *why ? why : strerror(-bad));
    }
  }
  if (e < 0)
    ni_say(stderr, "%s: %s\n", name, strerror(-e));
  bool could_not = e < 0 || (x->n == 0 && ni_box_sources_bad(&x->sources));
  bool part = x->failed || ni_box_sources_bad(&x->sources);
  return could_not ? NI_EXIT_COULD_NOT_RUN : part ? NI_EXIT_INCOMPLETE : NI_EXIT_FINE;
}

const struct ni_command ni_boxes_command = {
    .name = "boxes",
    .need = NI_NEED_DURING,
    .purpose = "whose black boxes lie here, what is in them, how old and how large",
    .about =
        "Lists black boxes: whose they are, what is in them, how old they are and how much room they take.",
    .opt = (const struct ni_opt[]){NI_ROW_BOXES(struct boxes),
                                   NI_ROW_BOX_DIR(struct boxes),
                                   NI_ROW_JSON(struct boxes, "boxes"),
                                   {0}},
    .more =
        "Where there are no boxes in DIR, those of this machine whose log lies there. Without DIR all "
        "boxes of this machine; as root those of all users. `recover --remove` removes those whose log has "
        "it all.",
    .exits = {{"0", "done"}, {"1", "could not run, or DIR is not there"}, {"2", "a box could not be read"}},
    .run = ni_boxes_run,
    .examples = {{"", "all black boxes of this machine"},
                 {"logs/", "those of the job that logs there"},
                 {"--json copies/", "copies made by snapshot, for a program"}}};

int ni_boxes_run(int argc, char **argv) {
  struct boxes x = {0};
  char size[32];
  int done, code = ni_words_parse(&ni_boxes_command, argc, argv, &x, &done);
  if (!done && ni_box_dir_check(argv[0], x.box_dir) < 0)
    code = NI_EXIT_COULD_NOT_RUN;
  else if (!done) {
    if (x.json) {
      ni_json_open(&x.out, stdout, "nccl-inspector-boxes-1");
      ni_json_array(&x.out, "boxes");
    }
    code = list_boxes(&x, argv[0]);
    if (x.json) {
      ni_json_end_array(&x.out);
      ni_json_close(&x.out);
    } else if (x.n) {
      ni_say(stdout, "%s %s, %s\n", NI_COUNT(x.n), ni_plural(x.n, "black box", "black boxes"),
             ni_bytes_text(x.bytes, size));
    }
    bool explain = x.n == 0 && (!x.json || x.inputs.n);
    if (explain)
      ni_box_sources_explain(stderr, argv[0], &x.sources, &x.inputs, &x.passed, false);
    else
      ni_box_sources_say_bad(stderr, argv[0], &x.sources);
  }
  ni_box_sources_free(&x.sources);
  ni_inputs_free(&x.inputs);
  return code;
}
