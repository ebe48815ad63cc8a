#include "plugin/os/glibc_compat.h"

#include "tags.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/line.h"
#include "plugin/os/file_facts.h"
#include "plugin/settings/control_parse.h"
#include "plugin/slots/state.h"

static void unreadable(const char *why) {
  ni_log_warn(&ni_g.log, "NCCL_INSPECTOR_TAGS=%s: %s; tags have no names", ni_g.config.tags_file, why);
}

/* The whole file, terminated, or NULL (said). */
static char *read_file(const char *path) {
  struct statx st;
  int fd = ni_above_two(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (fd < 0) {
    unreadable(strerror(errno));
    return NULL;
  }
  char *text = NULL;
  if (ni_file_facts(fd, "", AT_EMPTY_PATH, &st) != 0 || !S_ISREG(st.stx_mode))
    unreadable("not a plain file");
  else if (st.stx_size > NI_TAGS_FILE_BYTES)
    unreadable("longer than 256 KiB");
  else if (!(text = malloc(NI_TAGS_FILE_BYTES + 1)))
    unreadable("no memory");
  size_t n = 0;
  while (text && n < NI_TAGS_FILE_BYTES) {
    ssize_t got = read(fd, text + n, NI_TAGS_FILE_BYTES - n);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      unreadable(strerror(errno));
    if (got <= 0)
      break;
    n += (size_t)got;
  }
  close(fd);
  if (text)
    text[n] = 0;
  return text;
}

static void close_file(struct ni_tag_lines *t) {
  if (t->wrong)
    ni_log_warn(&ni_g.log,
                "NCCL_INSPECTOR_TAGS=%s: %u lines are no NUMBER from 1 and NAME of 1 to 64 bytes; ignored",
                ni_g.config.tags_file, t->wrong);
  free(t->text);
  *t = (struct ni_tag_lines){0};
}

void ni_tags_open(struct ni_tag_lines *t) {
  if (t->text)
    close_file(t);
  if (!ni_g.config.tags_file[0] || !ni_g.config.control_lines)
    return;
  t->text = t->at = read_file(ni_g.config.tags_file);
  t->line = 1;
}

/* One line of the file, terminated: without blanks at its ends and without a remark. */
static char *trimmed(char *line) {
  for (char *c = line; *c; c++) {
    bool remark = *c == '#' && (c == line || c[-1] == ' ' || c[-1] == '\t');
    if (remark || *c == '\r')
      *c = 0;
    if (!*c)
      break;
  }
  line += strspn(line, " \t");
  size_t n = strlen(line);
  while (n && (line[n - 1] == ' ' || line[n - 1] == '\t'))
    line[--n] = 0;
  return line;
}

bool ni_tags_next(struct ni_tag_lines *t, struct ni_control_line *in, char *command, size_t cap) {
  while (t->text && *t->at) {
    char *line = t->at, *end = strchr(line, '\n');
    uint32_t number = t->line++;
    t->at = end ? end + 1 : line + strlen(line);
    if (end)
      *end = 0;
    line = trimmed(line);
    if (!*line)
      continue;
    if (!ni_ctl_is_tag(line) || (size_t)snprintf(command, cap, "tag %s", line) >= cap) {
      t->wrong++;
      continue;
    }
    *in = (struct ni_control_line){.source = "tags",
                                   .file = ni_g.config.tags_file,
                                   .line = number,
                                   .command = command,
                                   .result = "done"};
    return true;
  }
  if (t->text)
    close_file(t);
  return false;
}
