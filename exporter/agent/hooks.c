#include "hooks.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/text/json_fields.h"
#include "exporter/base/text/safe_text.h"

#define LONGEST_NS UINT64_C(60000000000)

static FILE *write_verdict(const struct ni_live_job *job, const char *node) {
  static const struct ni_json_field fields[] = {
      NI_JSON_AS(ni_live_job, job, "job_id"), NI_JSON(ni_live_job, attempt),
      NI_JSON_AS(ni_live_job, hang.sentence, "sentence"), NI_JSON_AS(ni_live_job, hang.path, "path"),
      NI_JSON_AS(ni_live_job, hang_ns, "at_ns")};
  struct ni_json j;
  int fd = memfd_create("verdict", MFD_CLOEXEC);
  FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
  if (!f)
    return NULL;
  ni_json_open(&j, f, NULL);
  ni_json_text(&j, "schema", "nccl-inspector-on-hang-1");
  ni_json_text(&j, "node", node);
  ni_json_bool(&j, "certain", job->hang.certain);
  NI_JSON_ALL(&j, fields, job, NULL);
  ni_json_close(&j);
  return f;
}

static void run_hook(struct ni_task *t, char *const *argv, const struct ni_live_job *job, const char *node,
                     uint64_t mono_ns) {
  FILE *f = write_verdict(job, node);
  bool fine = f && fflush(f) == 0 && lseek(fileno(f), 0, SEEK_SET) == 0 &&
      ni_task_begin(t, argv, (int[]){fileno(f), STDOUT_FILENO, STDERR_FILENO}, 0, true, mono_ns + LONGEST_NS);
  if (!fine)
    ni_say(stderr, "--on-hang: %s cannot be started: %s\n", argv[0], strerror(errno));
  if (f)
    fclose(f);
}

static void report_if_over(struct ni_task *t, uint64_t mono_ns) {
  int code;
  if (!t->pid || !ni_task_over(t, mono_ns, &code))
    return;
  if (WIFEXITED(code))
    ni_say(stderr, "--on-hang: the program ended with code %d\n", WEXITSTATUS(code));
  else
    ni_say(stderr, "--on-hang: the program ended by signal %d%s\n", WTERMSIG(code),
           mono_ns > t->end_ns ? ", after 60 s" : "");
}

void ni_hooks_turn(struct ni_hooks *h, char *const *argv, const struct ni_live *l, const char *node,
                   uint64_t mono_ns) {
  int unused = -1;
  for (int i = 0; i < NI_HOOKS_MAX; i++) {
    report_if_over(&h->task[i], mono_ns);
    if (!h->task[i].pid)
      unused = i;
  }
  NI_EACH(const struct ni_live_job, j, l->job, l->n_jobs) {
    char what[sizeof j->hang.sentence];
    memcpy(what, j->hang.sentence, sizeof what);
    char *age = strstr(what, "; nothing has moved for ");
    if (age)
      *age = 0; /* the same verdict, told again */
    uint64_t hash = ni_hash_text(ni_hash_text(ni_hash_text(ni_hash(0, j->uid), j->job), j->attempt), what);
    int k = 0;
    while (k < NI_HOOKS_TOLD && h->told[k] != hash)
      k++;
    const bool is_told = k < NI_HOOKS_TOLD, is_busy = argv && unused < 0;
    if (!j->hang.job[0] || is_told || is_busy)
      continue;
    h->told[h->n_told++ % NI_HOOKS_TOLD] = hash;
    if (!argv)
      continue;
    run_hook(&h->task[unused], argv, j, node, mono_ns);
    unused = -1; /* one a second */
  }
}
