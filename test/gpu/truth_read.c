/* Reading the GPU driver's truth; see check.h and truth.h. */
#include <dirent.h>
#include <string.h>

#include "test/nccl_sim/core/sim.h"
#include "check.h"

void *ni_gpu_grow(void *p, size_t n, size_t size) {
  if (n & (n - 1))
    return p;
  p = realloc(p, (n ? 2 * n : 1) * size);
  if (!p)
    ni_die(1, "gpu_check: out of memory");
  return p;
}

static void read_op(struct ni_gpu_truth *t, const char *path, const char *line) {
  unsigned long long group, bytes, event, call, tag;
  t->ops = ni_gpu_grow(t->ops, t->n_ops, sizeof *t->ops);
  struct ni_gpu_true_op *o = &t->ops[t->n_ops];
  memset(o, 0, sizeof *o);
  if (sscanf(line, NI_GPU_OP_SCAN, o->op.comm, &group, o->op.func, o->op.dtype, &bytes, &o->op.root,
             &o->op.peer, o->op.how, &event, &call, &tag) != 11)
    ni_die(1, "gpu_check: %s: not an operation: %s", path, line);
  o->op.group = group;
  o->op.bytes = bytes;
  o->op.event_ns = event;
  o->op.call_ns = call;
  o->op.tag = tag;
  if (strcmp(o->op.dtype, "ncclUint8") == 0)
    strcpy(o->op.dtype, "Unknown"); /* NCCL has no name for it */
  o->process = (int)t->n_processes - 1;
  o->order = t->n_ops++;
}

static void read_line(struct ni_gpu_truth *t, const char *path, char *line) {
  struct ni_gpu_process *p = t->n_processes ? &t->processes[t->n_processes - 1] : NULL;
  unsigned long long ns;
  line[strcspn(line, "\n")] = 0;
  if (strncmp(line, "process ", 8) == 0) {
    t->processes = ni_gpu_grow(t->processes, t->n_processes, sizeof *t->processes);
    p = &t->processes[t->n_processes++];
    memset(p, 0, sizeof *p);
    if (sscanf(line, "process pid=%d rank=%d ranks=%d nccl=%d layout=%15s device=%63s", &p->pid, &p->rank,
               &p->ranks, &p->nccl, p->layout, p->device) != 6)
      ni_die(1, "gpu_check: %s: not a process line: %s", path, line);
    return;
  }
  if (!p)
    ni_die(1, "gpu_check: %s: does not begin with a process line", path);
  if (strncmp(line, "op ", 3) == 0) {
    read_op(t, path, line);
  } else if (strncmp(line, "env NCCL_ALGO=", 14) == 0) {
    snprintf(p->algo, sizeof p->algo, "%.15s", line + 14);
  } else if (strncmp(line, "env NCCL_PROTO=", 15) == 0) {
    snprintf(p->proto, sizeof p->proto, "%.15s", line + 15);
  } else if (strcmp(line, "env NCCL_ALLGATHERV_ENABLE=0") == 0) {
    p->broadcast_on = true;
  } else if (sscanf(line, "gap ns=%llu", &ns) == 1) {
    t->gaps = ni_gpu_grow(t->gaps, t->n_gaps, sizeof *t->gaps);
    t->gaps[t->n_gaps++] = ns;
  } else if (strncmp(line, "skip ", 5) == 0) {
    if (strstr(line, "why=time"))
      t->skipped_time++;
    else
      t->skipped_other++;
  } else if (strncmp(line, "cost ", 5) == 0) {
    t->costs = ni_gpu_grow(t->costs, t->n_costs, sizeof *t->costs);
    struct ni_gpu_cost *c = &t->costs[t->n_costs++];
    if (sscanf(line, "cost what=%31s n=%*d ns=%llu", c->what, &ns) != 2)
      ni_die(1, "gpu_check: %s: %s", path, line);
    c->ns = ns;
  } else if (strncmp(line, "end ", 4) == 0) {
    if (strstr(line, "how=abort"))
      p->aborted = true;
    if (strstr(line, "exit"))
      p->exited = true;
  } else if (strcmp(line, "done") == 0) {
    p->done = true;
  }
}

void ni_gpu_truth_read(struct ni_gpu_truth *t, const char *dir) {
  char path[4096], line[1024];
  for (int rank = 0; rank < 64; rank++) {
    snprintf(path, sizeof path, "%s/truth-%d.txt", dir, rank);
    FILE *f = fopen(path, "re");
    if (!f)
      continue;
    while (fgets(line, sizeof line, f))
      read_line(t, path, line);
    fclose(f);
  }
  if (!t->n_processes)
    ni_die(1, "gpu_check: %s: no truth-<rank>.txt of gpu_drive in it", dir);
}

bool ni_gpu_no_broadcast(const struct ni_gpu_process *p) { return p->nccl >= 22900 && !p->broadcast_on; }

bool ni_gpu_invisible(const struct ni_gpu_truth *t, const struct ni_gpu_true_op *o) {
  return strcmp(o->op.func, "Broadcast") == 0 && ni_gpu_no_broadcast(&t->processes[o->process]);
}
