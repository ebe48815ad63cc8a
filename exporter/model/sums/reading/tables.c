#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "exporter/base/array.h"
#include "tables.h"

int ni_run_tables_init(struct ni_run *r) {
  pthread_mutex_init(&r->lock, NULL);
  void *p = mmap(NULL, NI_CONTEXTS_MAX * sizeof *r->context, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    return -ENOMEM;
  r->context = p;
  r->cap_contexts = NI_CONTEXTS_MAX;
  r->n_mix = 1; /* 0: not stated */
  return ni_names_init(&r->names);
}

void ni_tables_free(struct ni_run *r) {
  for (uint32_t i = 0; i < r->n_cells; i++) {
    ni_cell_drop(r, &r->cell[i]);
    free(r->cell[i].piece);
  }
  for (uint32_t i = 0; i < r->who.n_processes && r->process; i++)
    ni_cover_free(&r->process[i].cover);
  free(r->process);
  ni_clocks_free(&r->clocks);
  ni_stamps_free(&r->stamps);
  free(r->turns.item);
  free(r->comm);
  free(r->cell);
  ni_index_free(&r->cell_at_hash);
  ni_index_free(&r->context_at_hash);
  ni_who_free(&r->who);
  if (r->context)
    munmap(r->context, NI_CONTEXTS_MAX * sizeof *r->context);
  ni_names_free(&r->names);
  pthread_mutex_destroy(&r->lock);
}

int ni_find_or_add_process(struct ni_run *r, uint32_t host, int64_t pid, uint64_t start_ns, uint32_t file,
                           uint32_t *out) {
  pthread_mutex_lock(&r->lock);
  size_t n = r->who.n_processes;
  int64_t k = -ENOMEM;
  if (ni_array_room(r->process, n, r->cap_processes))
    k = ni_who_process_in(&r->who, ni_name_text(&r->names, host), pid, start_ns, r->files.file[file].path);
  if (r->who.n_processes > n)
    r->process[n] = (struct ni_sum_process){
        .host = host, .rank = -1, .world_size = -1, .nccl_version = -1, .gpu = -1, .file = file};
  if (k >= 0 && file < r->process[k].file)
    r->process[k].file = file;
  pthread_mutex_unlock(&r->lock);
  *out = (uint32_t)k;
  return k < 0 ? (int)k : 0;
}

/* The lock is held. */
static int init_comm(struct ni_run *r, uint32_t comm) {
  char text[24];
  snprintf(text, sizeof text, "0x%llx", (unsigned long long)r->who.comm[comm].hash);
  r->comm[comm].p2p_sampled = false;
  return ni_name(&r->names, NULL, text, &r->comm[comm].id);
}

int ni_find_or_add_member(struct ni_run *r, uint32_t process, uint32_t run, const struct ni_ident *id,
                          uint32_t *out) {
  pthread_mutex_lock(&r->lock);
  size_t n = r->who.n_comms;
  int64_t k = -ENOMEM;
  if (ni_array_room(r->comm, n, r->cap_comms))
    k = ni_who_member(&r->who, process, run, id, 0);
  if (r->who.n_comms > n && init_comm(r, (uint32_t)n) < 0)
    k = -ENOMEM;
  pthread_mutex_unlock(&r->lock);
  *out = (uint32_t)k;
  return k < 0 ? (int)k : 0;
}

static uint64_t hash_context(const struct ni_context *c) {
  const uint64_t member = ni_hash(c->member, (uint32_t)c->nnodes);
  return ni_hash(ni_hash(member, (uint64_t)c->text[0] << 32 | c->text[1]),
                 ni_hash((uint64_t)c->text[2] << 32 | c->text[3], c->text[4]));
}

/* The lock is held. */
static int find_or_add_context(struct ni_run *r, const struct ni_context *c, uint32_t *out) {
  const uint64_t hash = hash_context(c);
  const struct ni_context key = *c;
  uint32_t k;
  if (r->n_contexts + 1 >= NI_CONTEXTS_MAX)
    return -ENOSPC;
  for (size_t at = 0; (k = ni_index_next(&r->context_at_hash, hash, &at)) != NI_INDEX_NONE;)
    if (memcmp(&r->context[k], &key, sizeof key) == 0) {
      *out = k;
      return 0;
    }
  *out = r->n_contexts;
  if (!ni_array_room(r->context, r->n_contexts, r->cap_contexts) ||
      ni_index_add(&r->context_at_hash, hash, r->n_contexts) < 0)
    return -ENOMEM;
  r->context[r->n_contexts++] = key;
  return 0;
}

int ni_find_or_add_context(struct ni_run *r, const struct ni_context *c, uint32_t *out) {
  pthread_mutex_lock(&r->lock);
  const int e = find_or_add_context(r, c, out);
  pthread_mutex_unlock(&r->lock);
  return e;
}

static bool is_same_cell(const struct ni_sum_cell *x, const struct ni_sum_cell *c) {
  return x->type == c->type && x->kind == c->kind && x->func == c->func && x->msg_bytes == c->msg_bytes;
}

/* The lock is held. */
static int find_or_add_cell(struct ni_run *r, const struct ni_sum_cell *c, uint32_t *out) {
  const uint64_t hash = ni_hash(ni_hash(c->msg_bytes, c->func), (uint64_t)c->type << 8 | c->kind);
  uint32_t k;
  for (size_t at = 0; (k = ni_index_next(&r->cell_at_hash, hash, &at)) != NI_INDEX_NONE;)
    if (is_same_cell(&r->cell[k], c)) {
      *out = k;
      return 0;
    }
  *out = r->n_cells;
  if (!ni_array_room(r->cell, r->n_cells, r->cap_cells) ||
      ni_index_add(&r->cell_at_hash, hash, r->n_cells) < 0)
    return -ENOMEM;
  r->cell[r->n_cells++] = *c;
  return 0;
}

int ni_find_or_add_cell(struct ni_run *r, const struct ni_sum_cell *c, uint32_t *out) {
  pthread_mutex_lock(&r->lock);
  const int e = find_or_add_cell(r, c, out);
  pthread_mutex_unlock(&r->lock);
  return e;
}

int ni_find_or_add_mix(struct ni_run *r, uint32_t algo, uint32_t proto, uint8_t *out) {
  *out = 0;
  if (!algo && !proto)
    return 0;
  pthread_mutex_lock(&r->lock);
  unsigned i = 1;
  while (i < r->n_mix && (r->mix[i].algo != algo || r->mix[i].proto != proto))
    i++;
  if (i == r->n_mix && r->n_mix < NI_MIX_MAX) {
    r->mix[i].algo = algo;
    r->mix[i].proto = proto;
    r->n_mix++;
  }
  *out = i < r->n_mix ? (uint8_t)i : 0;
  pthread_mutex_unlock(&r->lock);
  return 0;
}

void ni_cell_drop(struct ni_run *r, struct ni_sum_cell *c) {
  for (size_t i = 0; i < c->n; i++) {
    if (!c->piece[i])
      continue;
    ni_segment_free(&c->piece[i]->s, &r->store);
    free(c->piece[i]);
  }
  c->n = 0;
}

int ni_cell_add_piece(struct ni_run *r, uint32_t cell, struct ni_piece *piece) {
  pthread_mutex_lock(&r->lock);
  struct ni_sum_cell *c = &r->cell[cell];
  int e = 0;
  if (!ni_array_room(c->piece, c->n, c->cap))
    e = -ENOMEM;
  else {
    c->piece[c->n++] = piece;
    c->records += piece->s.n;
  }
  pthread_mutex_unlock(&r->lock);
  return e;
}
