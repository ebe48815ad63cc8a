#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "command.h"

int ni_inputs_add(struct ni_inputs *in, const char *path) {
  if (!ni_array_room(in->path, in->n, in->cap) || !(in->path[in->n] = strdup(path))) return -ENOMEM;
  in->n++;
  return 0;
}

void ni_inputs_free(struct ni_inputs *in) {
  for (size_t i = 0; i < in->n; i++) free(in->path[i]);
  free(in->path);
  *in = (struct ni_inputs){0};
}

/* The part of --a_b=c before the '=' only: values keep their underscores. */
static void unify_spelling(int argc, char **argv) {
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
    if (strncmp(argv[i], "--", 2) == 0)
      for (char *p = argv[i] + 2; *p && *p != '='; p++)
        if (*p == '_') *p = '-';
}

/* A cookie's write(): argp and getopt put what they do not understand on stderr as it is. The line feeds are theirs. */
static ssize_t say_lines(void *to, const char *text, size_t n) {
  for (const char *end = text + n, *stop; text < end; text = stop + 1) {
    stop = memchr(text, '\n', (size_t)(end - text));
    ni_say(to, stop ? "%.*s\n" : "%.*s", (int)((stop ? stop : end) - text), text);
    if (!stop) break;
  }
  return (ssize_t)n;
}

int ni_options_parse(const struct argp *argp, int argc, char **argv, void *input, int *done) {
  argp_err_exit_status = NI_EXIT_USAGE;
  *done = 0;
  unify_spelling(argc, argv);
  /* argp prints help and messages about wrong options itself and exits; what comes back is a parser's own refusal. */
  FILE *terminal = stderr, *safe = fopencookie(terminal, "w", (cookie_io_functions_t){.write = say_lines});
  if (safe) stderr = safe; /* where argp exits, exit() flushes it */
  error_t e = argp_parse(argp, argc, argv, 0, NULL, input);
  stderr = terminal;
  if (safe) fclose(safe);
  if (e == 0) return 0;
  *done = 1;
  ni_say(stderr, "%s: %s\n", argv[0], strerror(e));
  return e == ENOMEM ? NI_EXIT_COULD_NOT_RUN : NI_EXIT_USAGE;
}

error_t ni_option_added(struct argp_state *state, const char *option, const char *arg, int e, const char *want) {
  if (e == -EINVAL) argp_error(state, "--%s=%s: want %s", option, arg, want);
  return e < 0 ? ENOMEM : 0;
}

void ni_inputs_unreadable(const char *who, const struct ni_files *files) {
  for (size_t i = 0; i < files->n_bad; i++)
    ni_say(stderr, "%s: %s: %s\n", who, files->bad[i].path, ni_unreadable_why(&files->bad[i]));
}

int ni_inputs_find(const struct ni_inputs *in, const char *who, struct ni_files *out) {
  int e = ni_discover(out, in->path, in->n);
  if (e < 0 || out->n) return e;
  ni_inputs_unreadable(who, out);
  for (size_t i = 0; i < in->n; i++) {
    size_t k = 0;
    while (k < out->n_bad && strcmp(out->bad[k].path, in->path[i]) != 0) k++;
    if (k < out->n_bad) continue;
    ni_say(stderr, "%s: %s: no log files in it (*.log, *.log.gz, *.jsonl, *.jsonl.gz)\n", who, in->path[i]);
  }
  return -ENOENT;
}

int ni_parse_expect(const char *text, char **name, uint64_t *count) {
  const char *eq = strrchr(text, '=');
  if (!eq || eq == text || eq[1] < '0' || eq[1] > '9') return -EINVAL;
  char *end;
  errno = 0;
  unsigned long long n = strtoull(eq + 1, &end, 10);
  if (errno || *end) return -EINVAL;
  *name = strndup(text, (size_t)(eq - text));
  if (!*name) return -ENOMEM;
  *count = n;
  return 0;
}
