#include "settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/process/as_user.h"

/* Tries each line by itself, so that an error can be reported with its place. */
static bool try_line(struct ni_argv *words, char *place, char *key) {
  struct ni_command alone = ni_agent_command;
  struct ni_agent_options o = {0};
  char *word = NULL, *value = strchr(key, '=');
  int done = 0;
  for (char *c; value && ((c = strstr(value, " #")) || (c = strstr(value, "\t#")));)
    *c = 0;
  for (size_t end = strlen(key); end && strchr(" \t\r\n", key[end - 1]);)
    key[--end] = 0;
  if (!*key || *key == '#')
    return true;
  if (!value) {
    ni_say(stderr, "%s: %s: want OPTION = VALUE, such as listen = 127.0.0.1:9777\n", place, key);
    return false;
  }
  value += 1 + strspn(value + 1, " \t");
  bool no = strcmp(value, "false") == 0, flag = no || strcmp(value, "true") == 0;
  if (asprintf(&word, "--%.*s%s%s", (int)strcspn(key, " \t="), key, flag ? "" : "=", flag ? "" : value) < 0)
    return false;
  alone.refuse = NULL;
  (void)ni_words_parse(&alone, 2, (char *[]){place, word, NULL}, &o, &done);
  ni_agent_options_free(&o);
  bool fine = !done && (no || ni_argv_add(words, word) == 0);
  free(word);
  return fine;
}

/* With a "-" before the path the file may be missing, as with EnvironmentFile= of systemd. */
static bool read_settings_file(struct ni_argv *words, const char *name, const char *path) {
  bool may_lack = *path == '-';
  path += may_lack;
  char place[4352], *line = NULL;
  size_t cap = 0, number = 0;
  struct stat st;
  int fd = ni_named_open(path);
  FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
  if (fd < 0)
    errno = -fd;
  const char *why = NULL;
  if (!f || fstat(fileno(f), &st) != 0)
    why = strerror(errno);
  else if (!S_ISREG(st.st_mode))
    why = "no regular file";
  else if (geteuid() == 0 && (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH))))
    why = "others can write it, and root does what it says: chown root, chmod go-w";
  if (!f && errno == ENOENT && may_lack) {
    ni_say(stderr, "%s: there is no %s: all settings are the defaults\n", name, path);
    return true;
  }
  bool fine = !why;
  if (why)
    ni_say(stderr, "%s: --config=%s: %s\n", name, path, why);
  while (fine && getline(&line, &cap, f) >= 0) {
    snprintf(place, sizeof place, "%s: %s:%zu", name, path, ++number);
    fine = try_line(words, place, line + strspn(line, " \t"));
  }
  free(line);
  if (f)
    fclose(f);
  return fine;
}

struct ni_settings *ni_settings_read(int argc, char **argv, int *code) {
  struct ni_settings *s = calloc(1, sizeof *s);
  int done = !s;
  *code = s ? ni_agent_options_parse(&s->o, argc, argv, &done) : NI_EXIT_COULD_NOT_RUN;
  if (!done && s->o.config) {
    bool fine = ni_argv_add(&s->words, argv[0]) == 0 && read_settings_file(&s->words, argv[0], s->o.config);
    for (int i = 1; i < argc && fine; i++)
      fine = ni_argv_add(&s->words, argv[i]) == 0;
    ni_agent_options_free(&s->o);
    s->o = (struct ni_agent_options){0};
    *code =
        fine ? ni_agent_options_parse(&s->o, (int)s->words.n, s->words.word, &done) : NI_EXIT_COULD_NOT_RUN;
    done |= !fine;
  }
  if (!done && s->o.on_hang.n && access(s->o.on_hang.word[0], X_OK) != 0) {
    ni_say(stderr, "%s: --on-hang=%s: %s. Name a program that the agent may run\n", argv[0],
           s->o.on_hang.word[0], strerror(errno));
    done = 1;
    *code = NI_EXIT_USAGE;
  }
  if (done && s)
    ni_settings_free(s);
  return done ? NULL : s;
}

void ni_settings_free(struct ni_settings *s) {
  ni_agent_options_free(&s->o);
  ni_argv_free(&s->words);
  free(s);
}
