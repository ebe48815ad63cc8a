/*
 * nccl-inspector recover: the command line of it.
 *
 *   box ─▶ its owner ─▶ with his rights: its log (place.h), what is not in it (recover_box.h), the part's
 *       file ─▶ answer ─▶ said
 *
 * As root the middle is a child's (as_user.h). Only where --output is a folder of root's own does root make
 * the file and name it; it then belongs to the box's owner, who writes through the descriptor.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/process/as_user.h"
#include "exporter/cli/command.h"
#include "exporter/base/text/json_write.h"
#include "exporter/base/now.h"
#include "exporter/base/text/plural.h"
#include "exporter/input/box/box_decode.h"
#include "place.h"
#include "recover_box.h"

/* a process that may be alive has given no sign of it for so long */
#define SILENT_NS UINT64_C(60000000000)

struct recover {
  struct ni_inputs inputs;
  struct ni_box_sources sources;
  struct ni_box_passed passed;
  const char *output, *box_dir;
  int out_dir; /* --output, where we may write there ourselves; -1 */
  bool json, quiet, live, remove;
  struct ni_json out;
  struct recover_answer *answer;
  size_t parts, damaged, failed, alive, seen;
  uint64_t records;
};

/*
 * What is found out with the owner's rights. Shared with him: numbers and texts, whose ends root sets itself.
 */
struct recover_answer {
  bool elsewhere, alive, live, failed, part, damaged, unread, removed, removable;
  struct ni_life_fact life;
  int64_t pid;
  uint64_t records, in_flight, incomplete, lost, from;
  char host[256], said[4096], stem[256], name[300], dir[4096], why[5000], bad[512];
};

/* One box on its way. */
struct recover_task {
  struct recover *r;
  struct recover_answer *a;
  struct ni_out_file file; /* fd: handed over by root; -1: with the owner's rights */
  const char *path;
};

/* ---- with the rights of the box's owner ---- */

/*
 * May the process still be alive, and write its log? If nobody can say, a heartbeat that stopped long ago
 * decides.
 */
static bool may_be_alive(const struct ni_box *b) {
  const struct ni_box_header *h = ni_box_header(b);
  if (ni_box_life(b) != NI_LIFE_UNKNOWN)
    return ni_box_life(b) == NI_LIFE_ALIVE;
  return h->heartbeat_every_ms == 0 || ni_now_ns(CLOCK_REALTIME) < h->heartbeat_unix_ns + SILENT_NS;
}

static void set_write_error(struct recover_answer *a, const char *why) {
  a->failed = true;
  snprintf(a->why, sizeof a->why,
           "no further part of %s/%s.jsonl.gz can be written: %s. Free space or give access there, or name "
           "another folder with --output",
           a->dir, a->stem, why);
}

/*
 * Writes the lines of the box into a file. The file gets its name here, unless root has made it. 0 or -errno,
 * with a sentence.
 */
static int write_part(struct recover_task *j, const struct ni_box *b, const struct ni_place *p) {
  struct recover_answer *a = j->a;
  struct ni_recovered out = {0};
  struct ni_out_file *file = &j->file, own = {.dir = -1, .fd = -1};
  char why[512] = "";
  int e = 0, dir = -1;
  if (file->fd < 0) {
    file = &own;
    dir = ni_out_dir(p->dir, true, why, sizeof why);
    if (dir < 0 || (e = ni_out_begin_for(&own, dir, "recover", 0644)) < 0) {
      if (dir >= 0)
        close(dir);
      set_write_error(a, dir < 0 ? why : strerror(-e));
      return 0;
    }
  }
  FILE *f = ni_recover_lines(file->fd);
  e = f ? ni_recover_box(b, &p->log, f, a->live, &out) : -ENOMEM;
  int written = f && fclose(f) != 0 ? -errno : 0;
  a->records = out.records;
  a->in_flight = out.in_flight;
  a->incomplete = out.incomplete;
  a->lost = out.lost;
  a->damaged = out.damaged || (ni_box_outside(b) && out.communicators);
  a->part = e == 0 && out.part;
  if (a->part && written == 0 && file == &own)
    written = ni_recover_name(&own, a->stem, a->from, a->name, sizeof a->name);
  if (e == 0 && out.part && written < 0)
    set_write_error(a, strerror(-written));
  if (file == &own) {
    ni_out_drop(&own);
    close(dir);
  }
  return e;
}

static int recover_one(const struct ni_box *b, void *arg) {
  struct recover_task *j = arg;
  struct recover *r = j->r;
  struct recover_answer *a = j->a;
  struct ni_place p = {0};
  const struct ni_box_header *h = ni_box_header(b);
  int e = ni_place_find(&p, &r->sources, &r->inputs, r->output, b);
  a->live = may_be_alive(b);
  a->life = *ni_box_life_fact(b);
  a->pid = h->pid;
  a->elsewhere = p.elsewhere;
  a->from = p.log.next;
  snprintf(a->host, sizeof a->host, "%s", h->hostname);
  snprintf(a->said, sizeof a->said, "%s", p.said);
  snprintf(a->stem, sizeof a->stem, "%s", p.stem);
  snprintf(a->dir, sizeof a->dir, "%s", p.dir ? p.dir : "");
  if (p.log.bad)
    snprintf(a->bad, sizeof a->bad, "%s", p.log.bad);
  if (e < 0 || p.elsewhere)
    goto out;
  a->alive = a->live && !ni_box_is_copy(b) && !r->live;
  a->failed = !a->alive && (!p.dir || p.closed);
  if (a->failed && p.closed)
    snprintf(a->why, sizeof a->why, "%s cannot be searched as uid %u, whose box this is: %s", p.closed,
             geteuid(), strerror(p.error));
  else if (a->failed)
    snprintf(a->why, sizeof a->why,
             "its log is not here (it was in %s): name the log's folder, too, or say with --output "
             "where the records shall go",
             *a->said ? a->said : "no folder");
  else if (!a->alive)
    e = write_part(j, b, &p);
  const bool is_dead = !a->alive && !a->live, is_whole = !a->failed && !a->damaged && !a->bad[0];
  a->removable = is_dead && is_whole && !ni_box_is_copy(b);
out:
  ni_place_free(&p);
  return e;
}

static int remove_one(const struct ni_box *b, void *arg) {
  const struct recover_task *j = arg;
  return unlink(j->path) == 0 ? 0 : -errno;
}

/* ---- one box ---- */

static void print_result(struct recover *r, const char *box, const struct recover_answer *a,
                         const char *result, const char *text) {
  bool bad = strcmp(result, "failed") == 0 || strcmp(result, "unreadable") == 0;
  char path[sizeof a->dir + sizeof a->name];
  r->seen++;
  if (r->json) {
    struct ni_json *j = &r->out;
    snprintf(path, sizeof path, "%s/%s", a ? a->dir : "", a ? a->name : "");
    ni_json_object(j, NULL);
    ni_json_text(j, "box", box);
    ni_json_text(j, "hostname", a ? a->host : NULL);
    if (a)
      ni_json_i64(j, "pid", a->pid);
    ni_json_text(j, "process", a ? ni_life_name(a->life.life) : NULL);
    ni_json_text(j, "result", result);
    ni_json_text(j, "text", text);
    ni_json_text(j, "path", a && *a->name ? path : NULL);
    ni_json_u64(j, "records", a ? a->records : 0);
    ni_json_u64(j, "in_flight", a ? a->in_flight : 0);
    ni_json_u64(j, "incomplete", a ? a->incomplete : 0);
    ni_json_u64(j, "lost", a ? a->lost : 0);
    ni_json_text(j, "end", a ? ni_life_end_name(a->life.end) : NULL);
    ni_json_bool(j, "removed", a && a->removed);
    ni_json_end_object(j);
    return;
  }
  if (r->quiet && !bad)
    return;
  FILE *f = bad ? stderr : stdout;
  if (a)
    ni_say(f, "%s pid %" PRId64 ": ", a->host, a->pid);
  ni_say(f, "%s%s%s%s\n", text, bad || !a ? ": " : "", bad || !a ? box : "",
         a && a->removed ? "; box removed" : "");
}

/* Removes the box, once its log has everything. */
static void remove_box(struct recover_task *j, struct ni_box_visit *v) {
  char why[256];
  v->work = remove_one;
  v->keep = -1;
  int e = ni_box_visit(v, why, sizeof why);
  j->a->removed = e == 0;
  if (e < 0)
    ni_say(stderr, "%s: not removed: %s\n", j->path, *why ? why : strerror(-e));
}

/* Its process runs, or nobody here knows. */
static void report_left_alone(struct recover *r, const struct recover_task *j) {
  const struct recover_answer *a = j->a;
  char text[512], reason[256];
  ni_life_reason(&a->life, reason, sizeof reason);
  if (a->life.life == NI_LIFE_ALIVE) {
    snprintf(text, sizeof text,
             "left alone, its process runs (%s): `nccl-inspector hang` looks at it, `snapshot` copies it",
             reason);
  } else {
    snprintf(text, sizeof text,
             "left alone, whether its process runs is not known: %s. Try again in a minute, or where it ran",
             reason);
  }
  print_result(r, j->path, a, "alive", text);
}

static void report_box(struct recover *r, const struct recover_task *j) {
  const struct recover_answer *a = j->a;
  char text[6000], lost[128] = "";
  if (a->alive) {
    r->alive++;
    report_left_alone(r, j);
  } else if (a->failed) {
    r->failed++;
    print_result(r, j->path, a, "failed", a->why);
  } else if (!a->part) {
    print_result(r, j->path, a, "nothing", "nothing to recover: the log has it all");
  } else {
    r->parts++;
    r->records += a->records;
    if (a->lost)
      snprintf(lost, sizeof lost, ", %s %s lost that its black box had no room for", NI_COUNT(a->lost),
               ni_plural(a->lost, "operation", "operations"));
    snprintf(text, sizeof text, "%s %s, %s %s in flight%s -> %s/%s", NI_COUNT(a->records),
             ni_plural(a->records, "record", "records"), NI_COUNT(a->in_flight),
             ni_plural(a->in_flight, "operation", "operations"),
             a->live ? " (of a process that may go on writing)" : lost, a->dir, a->name);
    print_result(r, j->path, a, a->live ? "snapshot" : "recovered", text);
    if (*a->bad && !r->json)
      ni_say(stderr, "%s: not read, so what it holds may now be there twice\n", a->bad);
  }
}

/* Gives the file of root its name, from what the owner found out. */
static void name_part(struct recover_task *j) {
  struct recover_answer *a = j->a;
  const bool has_name = a->part && !a->failed && *a->stem != '.' && !strchr(a->stem, '/');
  if (!has_name) {
    ni_out_drop(&j->file);
    return;
  }
  int e = ni_recover_name(&j->file, a->stem, a->from, a->name, sizeof a->name);
  if (e < 0)
    set_write_error(a, strerror(-e));
}

static void terminate_texts(struct recover_answer *a) {
  a->host[sizeof a->host - 1] = a->said[sizeof a->said - 1] = a->stem[sizeof a->stem - 1] =
      a->name[sizeof a->name - 1] = 0;
  a->dir[sizeof a->dir - 1] = a->why[sizeof a->why - 1] = a->bad[sizeof a->bad - 1] = 0;
}

static int visit_box(struct recover *r, const char *path) {
  struct recover_task j = {r, r->answer, {.dir = -1, .fd = -1}, path};
  struct ni_box_visit v = {
      .path = path, .named = r->sources.named && r->output, .keep = -1, .work = recover_one, .arg = &j};
  struct stat st;
  char why[512] = "";
  int e = lstat(path, &st) == 0 ? 0 : -errno;
  *j.a = (struct recover_answer){0};
  /* else the owner tries, and says why not */
  if (e == 0 && r->out_dir >= 0 && ni_out_begin_for(&j.file, r->out_dir, "recover", 0644) == 0) {
    if (geteuid() == 0 && fchown(j.file.fd, st.st_uid, (gid_t)-1) != 0)
      ni_out_drop(&j.file);
    v.keep = j.file.fd;
  }
  if (e == 0)
    e = ni_box_visit(&v, why, sizeof why);
  terminate_texts(j.a);
  if (j.file.fd >= 0) {
    if (e < 0)
      ni_out_drop(&j.file);
    else
      name_part(&j);
  }
  if (e < 0) {
    if (e == -ENOMEM || (!r->sources.named && !ni_box_passes(&r->passed, path, e)))
      return e == -ENOMEM ? e : 0;
    r->damaged++;
    print_result(r, path, NULL, "unreadable", *why ? why : strerror(-e));
    return 0;
  }
  if (*j.a->said)
    ni_box_sources_led(&r->sources, j.a->said);
  r->passed.elsewhere += j.a->elsewhere;
  if (j.a->elsewhere)
    return 0;
  r->damaged += j.a->damaged;
  if (r->remove && j.a->removable && !j.a->failed)
    remove_box(&j, &v);
  report_box(r, &j);
  return 0;
}

static int recover_all(struct recover *r) {
  int e = 0;
  for (size_t i = 0; i < r->sources.boxes.n_bad; i++) {
    if (!ni_box_name(r->sources.boxes.bad[i].path))
      continue; /* a folder: of the command line, see report_misled(), or anybody's */
    r->failed++;
    print_result(r, r->sources.boxes.bad[i].path, NULL, "unreadable",
                 ni_unreadable_why(&r->sources.boxes.bad[i]));
  }
  for (size_t i = 0; e == 0 && i < r->sources.boxes.n; i++)
    e = visit_box(r, r->sources.boxes.file[i].path);
  return e;
}

/* ---- command line ---- */

static const char *refuse_recover(void *into) {
  const struct recover *r = into;
  return r->live && !r->output ? "--live needs --output: a running process writes its own log" : NULL;
}

const struct ni_command ni_recover_command = {
    .name = "recover",
    .need = NI_NEED_AFTER,
    .purpose = "what a killed process had not written yet, into its log",
    .about = "Writes what a killed process had finished and not yet written as a further part of its log.",
    .opt =
        (const struct ni_opt[]){
            NI_ROW_BOXES(struct recover),
            {"input-dir", 0, NI_OPT_INPUTS, "DIR", "Logs or black boxes (also as plain argument)",
             NI_INTO(struct recover, inputs)},
            {"output", 0, NI_OPT_TEXT, "DIR", "Where the parts go, instead of beside the logs",
             NI_INTO(struct recover, output)},
            NI_ROW_BOX_DIR(struct recover),
            {"live", 0, NI_OPT_FLAG, NULL,
             "Of running processes too: a snapshot, marked as such; needs --output",
             NI_INTO(struct recover, live)},
            {"remove", 0, NI_OPT_FLAG, NULL,
             "Removes the box of a dead process once all that is in it is in the log",
             NI_INTO(struct recover, remove)},
            NI_ROW_JSON(struct recover, "recover"),
            {"quiet", 'q', NI_OPT_FLAG, NULL, "Only what went wrong", NI_INTO(struct recover, quiet)},
            {0}},
    .more =
        "DIR: logs, black boxes, or copies of boxes. Where there are no boxes in them, those of this "
        "machine whose log lies there. Without DIR all boxes of this machine. Running it twice gives "
        "nothing new.",
    .exits = {{"0", "done"},
              {"1", "a part could not be written, or DIR or that of --box-dir is not there"},
              {"2", "a box could not be read or holds damage"}},
    .examples = {{"", "on the node of a job that was killed: completes all its logs"},
                 {"logs/ copies/", "anywhere, with the copies that snapshot made"}},
    .refuse = refuse_recover,
    .run = ni_recover_run};

/* The paths hold neither logs nor boxes: perhaps a slip of the pen, which must not read as "all is there". */
static bool is_nothing_there(const struct recover *r) {
  return r->inputs.n && r->sources.logs.n == 0 && r->seen == 0;
}

static void print_report(struct recover *r) {
  if (r->json) {
    ni_json_end_array(&r->out);
    ni_json_u64(&r->out, "records", r->records);
    ni_json_u64(&r->out, "parts", r->parts);
    ni_json_close(&r->out);
  } else if (r->seen == 0 && !r->quiet) {
    ni_say(stdout, "nothing to recover: no black box%s\n", r->inputs.n ? " of these logs" : "");
  }
}

/*
 * A place that does not exist or cannot be searched is different from nothing to do there. A place that a box
 * names may not exist yet.
 */
static void report_misled(struct recover *r, const char *name) {
  bool bad = ni_box_sources_bad(&r->sources);
  if (r->seen)
    ni_box_sources_say_bad(stderr, name, &r->sources);
  else if (bad || r->passed.foreign || r->sources.box_dir_error || is_nothing_there(r))
    ni_box_sources_explain(stderr, name, &r->sources, &r->inputs, &r->passed, false);
  r->failed += bad;
}

int ni_recover_run(int argc, char **argv) {
  struct recover r = {.out_dir = -1, .answer = ni_shared(sizeof *r.answer)};
  char why[512];
  int done, code = ni_words_parse(&ni_recover_command, argc, argv, &r, &done), e;
  if (done)
    goto out;
  if (ni_box_dir_check(argv[0], r.box_dir) < 0) {
    code = NI_EXIT_COULD_NOT_RUN;
    goto out;
  }
  e = r.answer ? ni_box_sources_find(&r.sources, &r.inputs, r.box_dir, NULL) : -ENOMEM;
  /* else each owner says why it cannot be used */
  if (r.output)
    r.out_dir = ni_out_dir(r.output, true, why, sizeof why);
  if (r.json) {
    ni_json_open(&r.out, stdout, "nccl-inspector-recover-1");
    ni_json_array(&r.out, "boxes");
  }
  if (e == 0)
    e = recover_all(&r);
  if (e < 0) {
    ni_say(stderr, "%s: %s\n", argv[0], strerror(-e));
    code = NI_EXIT_COULD_NOT_RUN;
    goto out;
  }
  print_report(&r);
  report_misled(&r, argv[0]);
  code = r.failed ? NI_EXIT_COULD_NOT_RUN : r.damaged ? NI_EXIT_INCOMPLETE : NI_EXIT_FINE;
out:
  ni_box_sources_free(&r.sources);
  ni_inputs_free(&r.inputs);
  return code;
}
