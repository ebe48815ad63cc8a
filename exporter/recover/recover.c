/*
 * nccl-inspector recover: the command line of it. Which boxes, which logs belong to each, where the part goes.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../command.h"
#include "../json_out.h"
#include "../plural.h"
#include "recover_box.h"
#include "sources.h"

#define SILENT_NS UINT64_C(60000000000) /* a process that may be alive has given no sign of it for so long */

struct recover {
  struct ni_inputs inputs;
  struct ni_box_sources sources;
  struct ni_box_passed passed;
  const char *output, *box_dir;
  bool json, quiet, live;
  struct ni_json out;
  size_t parts, damaged, failed, alive, seen;
  uint64_t records;
};

/* ---- the log of one box ---- */

static const char *base_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool same_stem(const char *name, const char *stem, size_t n) {
  return strncmp(name, stem, n) == 0 && ni_log_stem(name, NULL) == n;
}

struct found {
  struct ni_log_state log;
  char *dir; /* of the first file */
};

static int take_file(struct found *f, const char *path, uint64_t start_ns) {
  if (!f->dir) {
    const char *slash = strrchr(path, '/');
    f->dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    if (!f->dir) return -ENOMEM;
  }
  return ni_log_state_read(&f->log, path, start_ns);
}

/* The first file of a log has no number. */
static int by_number(const void *a, const void *b) {
  uint64_t m, n;
  (void)ni_log_stem(*(char *const *)a, &m);
  (void)ni_log_stem(*(char *const *)b, &n);
  return m < n ? -1 : m > n;
}

/* Files of the stem in one directory, in the order in which they were written. skip: a list that was read already. */
static int search(struct found *f, const char *dir, const char *stem, size_t n, uint64_t start_ns, const struct ni_files *skip) {
  DIR *d = opendir(dir);
  char **path = NULL;
  size_t found = 0;
  int e = 0;
  if (!d) return 0;
  for (struct dirent *entry; e == 0 && (entry = readdir(d));) {
    if (!same_stem(entry->d_name, stem, n)) continue;
    char **p = realloc(path, (found + 1) * sizeof *p);
    if (p) path = p;
    if (!p || asprintf(&path[found], "%s/%s", dir, entry->d_name) < 0) e = -ENOMEM;
    else found++;
  }
  closedir(d);
  if (found > 1) qsort(path, found, sizeof *path, by_number);
  for (size_t i = 0; i < found; i++) {
    struct stat st;
    bool have = stat(path[i], &st) != 0;
    for (size_t k = 0; !have && k < skip->n; k++)
      have = skip->file[k].dev == st.st_dev && skip->file[k].ino == st.st_ino;
    if (e == 0 && !have) e = take_file(f, path[i], start_ns);
    free(path[i]);
  }
  free(path);
  return e;
}

/* A name for the log of a process that was killed before it had one. */
static int invented_stem(const struct ni_box_header *h, char **out) {
  char host[sizeof h->hostname];
  size_t n = 0;
  for (const char *p = h->hostname; *p && n < sizeof host - 1; p++, n++) {
    bool safe = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", *p) && (*p != '.' || n);
    host[n] = safe ? *p : '_';
  }
  host[n] = 0;
  if (asprintf(out, "%s-pid%" PRId64 "-%" PRIu64, *host ? host : "unknown-host", h->pid, h->made_ns / 1000000000u) < 0)
    *out = NULL;
  return *out ? 0 : -ENOMEM;
}

/* dir with its parents; one that cannot be made shows when the part is written. */
static int make_folders(const char *dir) {
  char *path = strdup(dir);
  if (!path) return -ENOMEM;
  for (char *p = path + 1; *p; p++)
    if (*p == '/') {
      *p = 0;
      (void)mkdir(path, 0755);
      *p = '/';
    }
  (void)mkdir(path, 0755);
  free(path);
  return 0;
}

/*
 * Reads the box's log wherever it is: among the paths, where the box says, in --output. *stem: path and name of the part,
 * NULL when nobody says where it may go. *other: the box belongs to a job that was not asked for.
 */
static int find_log(struct recover *r, const struct ni_box *b, struct found *f, char **stem, bool *other) {
  struct ni_box_log session = {0};
  bool placed = ni_box_session(b, &session) && *session.dir; /* says where its log is, or would have been */
  bool has = placed && *session.file && !strchr(session.file, '/');
  char *name = NULL;
  int e = has ? 0 : invented_stem(ni_box_header(b), &name);
  if (e == 0 && has && !(name = strndup(session.file, ni_log_stem(session.file, NULL)))) e = -ENOMEM;
  size_t n = name ? strlen(name) : 0;
  for (size_t i = 0; e == 0 && i < r->sources.logs.n; i++)
    if (same_stem(base_of(r->sources.logs.file[i].path), name, n))
      e = take_file(f, r->sources.logs.file[i].path, session.start_ns);
  *other = !r->sources.named && r->inputs.n && !f->dir && !(placed && ni_box_under(&r->inputs, session.dir));
  if (placed && !*other) ni_box_sources_led(&r->sources, session.dir);
  if (e == 0 && placed && !*other) e = search(f, session.dir, name, n, session.start_ns, &r->sources.logs);
  const char *dir = r->output ? r->output : f->dir;
  struct stat st;
  /* Where a box says is written only if it is our own box, or if the command line names the place: it may be anybody's. */
  if (!dir && placed && (ni_box_owner(b) == geteuid() || ni_box_under(&r->inputs, session.dir))) dir = session.dir;
  if (!dir && r->inputs.n == 1 && stat(r->inputs.path[0], &st) == 0 && S_ISDIR(st.st_mode)) dir = r->inputs.path[0];
  bool elsewhere = r->output && (!f->dir || strcmp(f->dir, r->output) != 0) && (!placed || strcmp(session.dir, r->output) != 0);
  if (e == 0 && elsewhere) e = search(f, r->output, name, n, session.start_ns, &r->sources.logs);
  if (*other) dir = NULL;
  if (e == 0 && dir) e = make_folders(dir);
  if (e == 0 && dir && asprintf(stem, "%s/%s", dir, name) < 0) {
    *stem = NULL;
    e = -ENOMEM;
  }
  free(name);
  return e;
}

/* ---- one box ---- */

static void say(struct recover *r, const char *box, const struct ni_box_header *h, const char *life, const char *result,
                const struct ni_recovered *out, const char *text) {
  r->seen++;
  if (r->json) {
    struct ni_json *j = &r->out;
    ni_json_object(j, NULL);
    ni_json_text(j, "box", box);
    ni_json_text(j, "hostname", h ? h->hostname : NULL);
    if (h) ni_json_i64(j, "pid", h->pid);
    ni_json_text(j, "process", life);
    ni_json_text(j, "result", result);
    ni_json_text(j, "text", text);
    ni_json_text(j, "path", out ? out->path : NULL);
    ni_json_u64(j, "records", out ? out->records : 0);
    ni_json_u64(j, "in_flight", out ? out->in_flight : 0);
    ni_json_u64(j, "incomplete", out ? out->incomplete : 0);
    ni_json_end_object(j);
    return;
  }
  bool bad = strcmp(result, "failed") == 0 || strcmp(result, "unreadable") == 0;
  if (r->quiet && !bad) return;
  FILE *f = bad ? stderr : stdout;
  if (h) fprintf(f, "%s pid %" PRId64 ": ", h->hostname, h->pid);
  fprintf(f, "%s%s%s\n", text, bad || !h ? ": " : "", bad || !h ? box : "");
}

/* May the process still write its log? Where it cannot be known, a heartbeat that stopped long ago counts. */
static bool may_live(const struct ni_box *b) {
  const struct ni_box_header *h = ni_box_header(b);
  struct timespec t;
  if (ni_box_life(b) != NI_LIFE_UNKNOWN) return ni_box_life(b) == NI_LIFE_ALIVE;
  clock_gettime(CLOCK_REALTIME, &t);
  uint64_t now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
  return h->heartbeat_every_ms == 0 || now < h->heartbeat_unix_ns + SILENT_NS;
}

static int recover_one(struct recover *r, const char *path, const struct ni_box *b) {
  static const char *const lives[] = {"unknown", "alive", "dead"};
  const struct ni_box_header *h = ni_box_header(b);
  const char *life = lives[ni_box_life(b)];
  struct found f = {0};
  struct ni_recovered out = {0};
  char *stem = NULL, text[768];
  bool live = may_live(b), other;
  int e = find_log(r, b, &f, &stem, &other);
  r->passed.elsewhere += e == 0 && other;
  if (e < 0 || other) goto out;
  if (live && !ni_box_is_copy(b) && !r->live) {
    r->alive++;
    say(r, path, h, life, "alive", NULL,
        "left alone, its process runs: `nccl-inspector hang` looks at it, `snapshot` copies it");
    goto out;
  }
  if (!stem) {
    r->failed++;
    say(r, path, h, life, "failed", NULL, "its log is not here: say with --output where the records shall go");
    goto out;
  }
  e = ni_recover_box(b, &f.log, stem, live, &out);
  if (e == -ENOMEM) goto out;
  r->damaged += out.damaged || (ni_box_outside(b) && out.communicators);
  r->records += out.path ? out.records : 0;
  if (e < 0) {
    r->failed++;
    say(r, path, h, life, "failed", &out, out.error ? out.error : strerror(-e));
  } else if (!out.path) {
    say(r, path, h, life, "nothing", &out, "nothing to recover: the log has it all");
  } else {
    r->parts++;
    snprintf(text, sizeof text, "%" PRIu64 " %s, %" PRIu64 " %s in flight%s -> %.400s", out.records,
             ni_plural(out.records, "record", "records"), out.in_flight,
             ni_plural(out.in_flight, "operation", "operations"),
                 live ? " (of a process that may go on writing)" : "", out.path);
    say(r, path, h, life, live ? "snapshot" : "recovered", &out, text);
    if (f.log.bad && !r->json) fprintf(stderr, "%s: not read, so what it holds may now be there twice\n", f.log.bad);
  }
  e = 0;
out:
  ni_recovered_free(&out);
  ni_log_state_free(&f.log);
  free(f.dir);
  free(stem);
  return e;
}

static int recover_all(struct recover *r) {
  for (size_t i = 0; i < r->sources.boxes.n_bad; i++) {
    if (!ni_box_name(r->sources.boxes.bad[i].path))
      continue; /* a folder: of the command line, see say_misled(), or anybody's */
    r->failed++;
    say(r, r->sources.boxes.bad[i].path, NULL, NULL, "unreadable", NULL, ni_unreadable_why(&r->sources.boxes.bad[i]));
  }
  for (size_t i = 0; i < r->sources.boxes.n; i++) {
    const char *path = r->sources.boxes.file[i].path;
    struct ni_box *b = NULL;
    char why[256];
    int e = ni_box_open(&b, path, 0, why, sizeof why);
    if (e == 0) e = recover_one(r, path, b);
    ni_box_close(b);
    if (e == -ENOMEM) return e;
    if (e < 0 && !r->sources.named && !ni_box_passes(&r->passed, path, e)) continue;
    if (e < 0) {
      r->damaged++;
      say(r, path, NULL, NULL, "unreadable", NULL, *why ? why : strerror(-e));
    }
  }
  return 0;
}

/* ---- command line ---- */

enum { OPT_OUTPUT = NI_OPT_OWN, OPT_BOX_DIR, OPT_LIVE };

static error_t parse_option(int key, char *arg, struct argp_state *state) {
  struct recover *r = state->input;
  switch (key) {
    case NI_OPT_INPUT_DIR:
    case ARGP_KEY_ARG: return ni_inputs_add(&r->inputs, arg) < 0 ? ENOMEM : 0;
    case NI_OPT_JSON: r->json = true; return 0;
    case OPT_OUTPUT: r->output = arg; return 0;
    case OPT_BOX_DIR: r->box_dir = arg; return 0;
    case OPT_LIVE: r->live = true; return 0;
    case 'q': r->quiet = true; return 0;
    case ARGP_KEY_END:
      if (r->live && !r->output) argp_error(state, "--live needs --output: a running process writes its own log");
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static void report(struct recover *r) {
  if (r->json) {
    ni_json_end_array(&r->out);
    ni_json_u64(&r->out, "records", r->records);
    ni_json_u64(&r->out, "parts", r->parts);
    ni_json_end_object(&r->out);
    ni_json_finish(&r->out);
  } else if (r->seen == 0 && !r->quiet) {
    printf("nothing to recover: no black box%s\n", r->inputs.n ? " of these logs" : "");
  }
}

/* A place that is not there or cannot be searched is not the same as nothing to do there; one a box names may come. */
static void say_misled(struct recover *r, const char *name) {
  bool bad = ni_box_sources_bad(&r->sources);
  if (r->seen) ni_box_sources_say_bad(stderr, name, &r->sources);
  else if (bad || r->passed.foreign || r->sources.box_dir_error)
    ni_box_sources_explain(stderr, name, &r->sources, &r->inputs, &r->passed, false);
  r->failed += bad;
}

int ni_recover_run(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"input-dir", NI_OPT_INPUT_DIR, "DIR", 0, "Logs or black boxes (also as plain argument)", 0},
      {"output", OPT_OUTPUT, "DIR", 0, "Where the parts go, instead of beside the logs", 0},
      {"box-dir", OPT_BOX_DIR, "DIR", 0, "Where the black boxes of this machine lie (default " NI_BOX_DIR ")", 0},
      {"live", OPT_LIVE, NULL, 0, "Of running processes too: a snapshot, marked as such; needs --output", 0},
      {"json", NI_OPT_JSON, NULL, 0, "JSON on standard output (schema nccl-inspector-recover-1)", 0},
      {"quiet", 'q', NULL, 0, "Only what went wrong", 0},
      {0}};
  static const struct argp argp = {
      options, parse_option, "[DIR|BOX...]",
      "Writes what a killed process had finished and not yet written as a further part of its log."
      "\vDIR: logs, black boxes, or copies of boxes. Where there are no boxes in them, those of this machine whose log lies "
      "there. Without DIR all boxes of this machine. Running it twice gives nothing new. Exit codes: 0 done, 1 a part could "
      "not be written, or DIR or that of --box-dir is not there, 2 a box could not be read or holds damage, 64 wrong usage.", NULL, NULL, NULL};
  struct recover r = {0};
  int done, code = ni_options_parse(&argp, argc, argv, &r, &done), e;
  if (done) goto out;
  if (ni_box_dir_check(argv[0], r.box_dir) < 0) {
    code = NI_EXIT_COULD_NOT_RUN;
    goto out;
  }
  e = ni_box_sources_find(&r.sources, &r.inputs, r.box_dir, NULL);
  if (r.json) {
    ni_json_begin(&r.out, stdout);
    ni_json_object(&r.out, NULL);
    ni_json_text(&r.out, "schema_version", "nccl-inspector-recover-1");
    ni_json_array(&r.out, "boxes");
  }
  if (e == 0) e = recover_all(&r);
  if (e < 0) {
    fprintf(stderr, "%s: %s\n", argv[0], strerror(-e));
    code = NI_EXIT_COULD_NOT_RUN;
    goto out;
  }
  report(&r);
  say_misled(&r, argv[0]);
  code = r.failed ? NI_EXIT_COULD_NOT_RUN : r.damaged ? NI_EXIT_INCOMPLETE : NI_EXIT_FINE;
out:
  ni_box_sources_free(&r.sources);
  ni_inputs_free(&r.inputs);
  return code;
}
