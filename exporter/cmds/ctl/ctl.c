/*
 * nccl-inspector ctl: puts one command into a control file, for the ranks of a running job (docs/control.md).
 *
 * The file is replaced as a whole by rename, so a rank reads the old text or the new one. Each line begins
 * with "@" and the time in Unix ns, larger than all before it: a rank carries a line out once, also when it
 * finds several at once, so lines of earlier calls stay until they are superseded. The file under its
 * temporary name, made with O_EXCL, keeps two calls apart. What a rank made of it stands in its log: nobody
 * waits. `show` reads that (ctl_show.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "exporter/base/process/as_user.h"
#include "exporter/cli/command.h"
#include "format/events.h"
#include "exporter/base/now.h"
#include "exporter/input/tags/tags.h"
#include "exporter/base/text/plural.h"
#include "ctl_listen.h"
#include "ctl_show.h"

#define FILE_BYTES 8192u /* what a rank reads at most */
#define KEPT_LINES 16u   /* of 24 that it carries out */
#define WAIT_TRIES 50    /* of 100 ms, for another call */

struct ctl {
  const char *dir, *process;
  int64_t rank; /* -1: all */
  char command[256];
  char path[4096], temp[4112];
  size_t base; /* where the names in the directory begin in them */
  int dir_fd;
};

static int parse_process(const struct ni_opt *o, void *into, const char *arg) {
  if (!*arg || strchr(arg, '/') || !strstr(arg, "-pid"))
    return -EINVAL;
  ((struct ctl *)into)->process = arg;
  return 0;
}

/* The directory, then the words of the command. */
static int collect_command_word(const struct ni_opt *o, void *into, const char *arg) {
  struct ctl *c = into;
  size_t n = strlen(c->command);
  if (!c->dir)
    c->dir = arg;
  else if (n + strlen(arg) + 2 > sizeof c->command || strpbrk(arg, "\n#"))
    return -EINVAL;
  else
    snprintf(c->command + n, sizeof c->command - n, "%s%s", n ? " " : "", arg);
  return 0;
}

static const char *refuse_ctl(void *into) {
  const struct ctl *c = into;
  if (!c->dir)
    return "which job? give the directory of its logs";
  if (!c->command[0])
    return "do what? give a command, such as: preset deep";
  if (strcmp(c->command, "show") == 0 && (c->rank >= 0 || c->process))
    return "show is of all processes";
  return c->rank >= 0 && c->process ? "--rank and --process name the same thing twice" : NULL;
}

const struct ni_command ni_ctl_command = {
    .name = "ctl",
    .need = NI_NEED_DURING,
    .purpose = "change what a running job records",
    .about =
        "Changes what a running job records. DIR is the directory of its logs (NCCL_INSPECTOR_DUMP_DIR).",
    .opt =
        (const struct ni_opt[]){
            {NULL, 0, NI_OPT_TAKE, "DIR COMMAND...", NULL, .take = collect_command_word,
             .want = "a command of at most 200 bytes, no line feed and no #"},
            {"rank", 0, NI_OPT_NUMBER, "N",
             "Only the process of global rank N, as its launcher states it (RANK, SLURM_PROCID, ...)",
             NI_INTO(struct ctl, rank), .want = "a global rank", .max = INT64_MAX},
            {"process", 0, NI_OPT_TAKE, "HOST-pidN",
             "Only this process: for jobs whose launcher states no rank", .take = parse_process,
             .want = "HOST-pidNUMBER, as the names of its log files begin"},
            {0}},
    .more =
        "Commands: preset light|standard|deep|trace, events LIST, verbose on|off, sample 1/N, flush, mark "
        "NAME, tag NUMBER NAME.\n"
        "And show: what the processes made of them, and whether another than the plugin changed NCCL's "
        "event mask.\n"
        "Every process looks once in two seconds, and writes a control line that says what it did. The "
        "file must belong to the user whose job it is.",
    .exits = {{"0", "the file is there"},
              {"1", "could not"},
              {"2", "the file is there, and nobody listens: the processes have ended"}},
    .examples = {{"logs/ preset deep", "all ranks record everything from now on"},
                 {"logs/ show", "what they made of it"},
                 {"--rank 17 logs/ verbose on", "traces of one rank"},
                 {"logs/ mark step-1000", "a mark in the timeline"},
                 {"logs/ tag 7 layer.3", "what calls with the tag 7 are called"}},
    .files = {{"nccl-inspector.control", "in DIR: what was asked for; the processes read it"}},
    .refuse = refuse_ctl,
    .run = ni_ctl_run};

static int begins_with(const char *text, const char *word) {
  size_t n = strlen(word);
  return strncmp(text, word, n) == 0 && (text[n] == ' ' || text[n] == 0);
}

enum { CLASS_MARK = 5, CLASS_TAG };

/*
 * Finds the class of a command: commands that replace each other have the same number; 0: no such command.
 * Marks stay side by side, and so do tags of other numbers.
 */
static int find_command_class(const char *command) {
  static const struct {
    const char *word;
    int class;
  } words[] = {{"preset", 1}, {"events", 1},        {"verbose", 2},    {"sample", 3},
               {"flush", 4},  {"mark", CLASS_MARK}, {"tag", CLASS_TAG}};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (begins_with(command, words[i].word))
      return words[i].class;
  return 0;
}

static int is_known_kind(const char *name, size_t n) {
  if (n == 3 && !memcmp(name, "all", n))
    return 1;
  if (n == 4 && !memcmp(name, "none", n))
    return 1;
  for (int i = 0; i < NI_PRESET_COUNT; i++)
    if (strlen(ni_presets[i].name) == n && !memcmp(ni_presets[i].name, name, n))
      return 1;
  for (int i = 0; i < NI_EVENT_COUNT; i++)
    if (strlen(ni_event_names[i]) == n && !memcmp(ni_event_names[i], name, n))
      return 1;
  return 0;
}

static int are_known_kinds(const char *list) {
  for (const char *s = list; *s;) {
    size_t n = strcspn(s, ", \t"), minus = *s == '-';
    if (n && !is_known_kind(s + minus, n - minus))
      return 0;
    s += n + (s[n] != 0);
  }
  return list[strspn(list, ", \t")] != 0;
}

static int is_known_sample(const char *text) {
  char *end;
  errno = 0;
  unsigned long long n =
      strncmp(text, "1/", 2) == 0 && text[2] >= '0' && text[2] <= '9' ? strtoull(text + 2, &end, 10) : 0;
  return n >= 1 && !errno && !*end && n <= NI_SAMPLE_MAX;
}

/* The number behind "tag "; 0: none. *rest: behind it. */
static uint64_t parse_tag_number(const char *command, const char **rest) {
  const char *p = command + strcspn(command, " \t");
  char *end;
  p += strspn(p, " \t");
  errno = 0;
  const unsigned long long n = *p >= '0' && *p <= '9' ? strtoull(p, &end, 10) : 0;
  if (!n || errno || n > NI_TAG_MAX)
    return 0;
  if (*end && *end != ' ' && *end != '\t')
    return 0;
  *rest = end + strspn(end, " \t");
  return n;
}

static int is_known_tag(const char *command) {
  const char *name;
  if (!parse_tag_number(command, &name) || !*name || strlen(name) > NI_TAG_NAME_MAX)
    return 0;
  for (; *name; name++)
    if ((unsigned char)*name < 0x20 || *name == 0x7f)
      return 0;
  return 1;
}

/* Does the new command replace the old one? */
static int supersedes(const char *new, const char *old) {
  const int class = find_command_class(new);
  const char *rest;
  if (class != find_command_class(old) || class == CLASS_MARK)
    return 0;
  return class != CLASS_TAG || parse_tag_number(new, &rest) == parse_tag_number(old, &rest);
}

/* Finds what a rank would refuse (plugin/settings/control_parse.c), so that the user can mend it. */
static const char *find_refusal(const char *command) {
  if (!find_command_class(command))
    return "preset NAME, events LIST, verbose on|off, sample 1/N, flush, mark NAME, tag NUMBER NAME or show "
           "expected";
  const char *rest = strchr(command, ' ');
  if (begins_with(command, "preset")) {
    for (int i = 0; rest && i < NI_PRESET_COUNT; i++)
      if (strcmp(rest + 1, ni_presets[i].name) == 0)
        return NULL;
    return "preset light, standard, deep or trace expected";
  }
  if (begins_with(command, "verbose"))
    return rest && (!strcmp(rest, " on") || !strcmp(rest, " off")) ? NULL : "verbose on or off expected";
  if (begins_with(command, "sample"))
    return rest && is_known_sample(rest + 1) ? NULL : "sample 1/N with N from 1 to 1000000 expected";
  if (begins_with(command, "tag"))
    return is_known_tag(command)
        ? NULL
        : "tag NUMBER NAME with a number from 1 to 9223372036854775807 and 1 to 64 bytes, no "
          "control character among them, expected";
  if (begins_with(command, "mark"))
    return rest && rest[1 + strspn(rest + 1, " \t")] && strlen(rest + 1) <= 64
        ? NULL
        : "mark NAME with 1 to 64 bytes expected";
  if (begins_with(command, "events"))
    return rest && are_known_kinds(rest + 1)
        ? NULL
        : "events with names of kinds, presets, all, none or -name, and commas between them, "
          "expected (docs/events.md)";
  return !rest || !strcmp(rest, " now") ? NULL : "flush with nothing behind it expected";
}

/*
 * Reads the lines of an earlier call into text (terminated). 0, or -errno. A file that does not exist is
 * empty. foreign: a rank of ours would not believe them (plugin/settings/control_file.c), so they must not
 * become ours by being written again.
 */
static int read_old_lines(const struct ctl *c, char *text, size_t cap, bool *foreign) {
  struct stat st;
  *text = 0;
  *foreign = false;
  int fd = ni_plain_open(c->dir_fd, c->path + c->base, &st);
  if (fd < 0)
    return fd == -ENOENT ? 0 : fd;
  *foreign = st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH);
  int e = st.st_uid != geteuid() && geteuid() != 0 ? -EPERM : 0;
  ssize_t got = e ? 0 : read(fd, text, cap - 1);
  if (got < 0)
    e = -errno;
  text[got > 0 ? got : 0] = 0;
  close(fd);
  return e;
}

/*
 * Composes the new text: old lines with a number that the new one does not replace, then the new one. Returns
 * its length. gone: how many others there were.
 */
static size_t compose_text(const struct ctl *c, char *old, bool foreign, char *out, size_t cap,
                           unsigned *gone) {
  char *line[64], *save = NULL;
  unsigned n = 0, first = 0;
  unsigned long long newest = 0;
  *gone = 0;
  for (char *l = strtok_r(old, "\n", &save); l && n < 64; l = strtok_r(NULL, "\n", &save)) {
    char *end;
    unsigned long long at = *l == '@' ? strtoull(l + 1, &end, 10) : 0;
    if (foreign || !at || *end != ' ') {
      *gone += *l != '#';
      continue;
    }
    if (at > newest && at < INT64_MAX)
      newest = at;
    if (!find_command_class(end + 1) || supersedes(c->command, end + 1))
      continue;
    line[n++] = l;
  }
  if (n >= KEPT_LINES)
    first = n - KEPT_LINES + 1;
  unsigned long long now = ni_now_ns(CLOCK_REALTIME);
  size_t used = 0;
  for (unsigned i = first; i < n && used + strlen(line[i]) + sizeof c->command + 64 < cap; i++)
    used += (size_t)snprintf(out + used, cap - used, "%s\n", line[i]);
  return used +
      (size_t)snprintf(out + used, cap - used, "@%llu %s\n", now > newest ? now : newest + 1, c->command);
}

static int say_error(const char *who, const char *path, int e, const char *hint) {
  ni_say(stderr, "%s: %s: %s%s%s\n", who, path, strerror(e), *hint ? "; " : "", hint);
  return NI_EXIT_COULD_NOT_RUN;
}

/*
 * Says who reads the file, which is there. In a folder above that of the logs, in a wrong one, and after the
 * end of a job nobody does.
 */
static int say_listeners(const struct ctl *c, const char *who) {
  struct ni_ctl_whose whose = {c->rank, c->process};
  struct ni_ctl_listeners l;
  int e = ni_ctl_listeners(c->dir, &whose, &l);
  if (e < 0)
    return say_error(who, c->dir, -e, "");
  if (l.any)
    return NI_EXIT_FINE;
  if (l.ended == 0) {
    char whom[300] = "";
    if (c->rank >= 0)
      snprintf(whom, sizeof whom, " of rank %" PRId64, c->rank);
    if (c->process)
      snprintf(whom, sizeof whom, " of %.255s", c->process);
    ni_say(
        stderr,
        "%s: note: no log%s lies in %s itself; processes look only into the directory that they write to\n",
        who, l.processes ? whom : "", c->dir);
    return NI_EXIT_FINE;
  }
  ni_say(stderr,
         "%s: nobody listens: %s that logged into %s %s ended. %s is for a job that begins there; remove it "
         "if none is to come\n",
         who, ni_plural(l.ended, "the process", "all processes"), c->dir, ni_plural(l.ended, "has", "have"),
         c->path);
  return NI_EXIT_INCOMPLETE;
}

/* Writes the control file by a temporary file of ours. Nobody else writes the control file meanwhile. */
static int write_control_file(const struct ctl *c, const char *who, int fd) {
  char old[FILE_BYTES + 1], text[FILE_BYTES];
  unsigned gone;
  bool foreign;
  int e = read_old_lines(c, old, sizeof old, &foreign);
  if (e < 0)
    return say_error(who, c->path, -e,
                     e == -EPERM ? "it belongs to another user: remove it, or be that user" : "remove it");
  size_t n = compose_text(c, old, foreign, text, sizeof text, &gone);
  if (write(fd, text, n) != (ssize_t)n || fchmod(fd, 0644) || fsync(fd))
    return say_error(who, c->temp, errno, "");
  if (renameat(c->dir_fd, c->temp + c->base, c->dir_fd, c->path + c->base))
    return say_error(who, c->path, errno, "");
  if (gone)
    ni_say(stderr, "%s: %u %s %s, %s no longer in %s\n", who, gone, ni_plural(gone, "line", "lines"),
           foreign ? "of a file that another user could write to" : "without a number, written by hand",
           ni_plural(gone, "is", "are"), c->path);
  return NI_EXIT_FINE;
}

int ni_ctl_run(int argc, char **argv) {
  struct ctl c = {.rank = -1};
  int done, code = ni_words_parse(&ni_ctl_command, argc, argv, &c, &done);
  if (done)
    return code;
  if (strcmp(c.command, "show") == 0)
    return ni_ctl_show(argv[0], c.dir) < 0 ? NI_EXIT_COULD_NOT_RUN : NI_EXIT_FINE;
  const char *why = find_refusal(c.command);
  if (why) {
    ni_say(stderr, "%s: \"%s\": %s\n", argv[0], c.command, why);
    return NI_EXIT_USAGE;
  }
  if ((c.dir_fd = open(c.dir, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
    return say_error(argv[0], c.dir, errno, "");
  char whose[256] = "";
  if (c.rank >= 0)
    snprintf(whose, sizeof whose, ".rank%" PRId64, c.rank);
  else if (c.process)
    snprintf(whose, sizeof whose, ".%.240s", c.process);
  if (snprintf(c.path, sizeof c.path, "%s/" NI_CONTROL_FILE "%s", c.dir, whose) >= (int)sizeof c.path)
    return say_error(argv[0], c.dir, ENAMETOOLONG, "");
  snprintf(c.temp, sizeof c.temp, "%s.new", c.path);
  c.base = strlen(c.dir) + 1;
  int fd = -1;
  for (int i = 0; i < WAIT_TRIES && fd < 0; i++) {
    fd = openat(c.dir_fd, c.temp + c.base, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0 && errno != EEXIST)
      return say_error(argv[0], c.temp, errno, "");
    if (fd < 0)
      (void)nanosleep(&(struct timespec){0, 100000000}, NULL);
  }
  if (fd < 0)
    return say_error(argv[0], c.temp, EEXIST, "another call is at it, or was killed: then remove this file");
  code = write_control_file(&c, argv[0], fd);
  close(fd);
  if (code != NI_EXIT_FINE)
    (void)unlinkat(c.dir_fd, c.temp + c.base, 0);
  else
    ni_say(stdout, "%s: %s\n", c.path, c.command);
  return code == NI_EXIT_FINE ? say_listeners(&c, argv[0]) : code;
}
