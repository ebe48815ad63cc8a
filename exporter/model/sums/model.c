#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/name_table.h"

const char *const ni_comm_type_words[NI_TYPE_COUNT] = {"one rank", "one node", "one rank per node", "mixed",
                                                       "unknown"};

const char *const ni_comm_type_names[NI_TYPE_COUNT] = {"single-rank", "nvlink-only", "hca-only", "mixed",
                                                       "unknown"};

void ni_human_bytes(uint64_t bytes, char *out) {
  static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes == 0) {
    memcpy(out, "0B", 3);
    return;
  }
  unsigned u = 0;
  double divisor = 1;
  for (uint64_t n = bytes; n >= 1000; n /= 1000) {
    u++;
    divisor *= 1000;
  }
  snprintf(out, 32, "%.2f%s", (double)bytes / divisor, units[u]);
}

const char *ni_ranks_text(const struct ni_process *p, char out[48]) {
  if (p->ranks < 2)
    snprintf(out, 48, "rank %d", p->rank);
  else if ((uint32_t)(p->last - p->first) + 1 == p->ranks)
    snprintf(out, 48, "ranks %d-%d", p->first, p->last);
  else
    snprintf(out, 48, "%u of ranks %d-%d", p->ranks, p->first, p->last);
  return out;
}

const char *ni_beside_ranks(const struct ni_summary *s, const struct ni_beside_entity *e, char out[48]) {
  struct ni_process all = {.first = INT32_MAX, .last = -1, .rank = -1};
  for (uint32_t i = 0; i < e->n_processes; i++) {
    const struct ni_process *p = &s->process[e->process[i]];
    int32_t first = p->ranks > 1 ? p->first : p->rank, last = p->ranks > 1 ? p->last : p->rank;
    all.ranks += p->ranks > 1 ? p->ranks : 1;
    if (first < all.first)
      all.first = all.rank = first;
    if (last > all.last)
      all.last = last;
  }
  if (!e->n_processes)
    snprintf(out, 48, "nobody's");
  else
    ni_ranks_text(&all, out);
  return out;
}

void ni_size_dir(uint64_t bytes, char *out) {
  char human[32];
  ni_human_bytes(bytes, human);
  snprintf(out, 80, "msg_size_%llu_%s", (unsigned long long)bytes, human);
}

void ni_file_word(const char *name, char *out, size_t size) {
  size_t n = 0;
  for (const unsigned char *p = (const unsigned char *)name; *p && n + 4 < size && n < 160; p++) {
    unsigned c = *p;
    const bool is_letter = (c | 32) - 'a' < 26, is_digit = c - '0' < 10;
    const bool stays = is_letter || is_digit || c == '-' || c == '_';
    if (stays)
      out[n++] = (char)c;
    else
      n += (size_t)snprintf(out + n, size - n, "%%%02X", c);
  }
  out[n] = 0;
}

static int compare_groups_by_share(const void *a, const void *b, void *summary) {
  const struct ni_summary *s = summary;
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  double p = s->group[x].time_share, q = s->group[y].time_share;
  if (p != q)
    return p > q ? -1 : 1;
  return x < y ? -1 : x > y;
}

uint32_t *ni_groups_by_share(const struct ni_summary *s) {
  return ni_order((uint32_t)s->n_groups, compare_groups_by_share, (void *)s);
}

void ni_summary_free(struct ni_summary *s) {
  for (size_t i = 0; i < s->n_cells; i++)
    free(s->cell[i].point);
  for (size_t i = 0; i < s->n_groups; i++)
    if (s->group[i].bin != s->no_bins)
      free(s->group[i].bin);
  free(s->no_bins);
  free(s->hang);
  for (size_t i = 0; i < s->input.n_trouble; i++)
    free(s->input.trouble[i]);
  for (size_t i = 0; i < s->input.n_notes; i++)
    free(s->input.note[i]);
  for (size_t i = 0; i < s->input.n_where; i++)
    free(s->input.where[i]);
  free(s->input.trouble);
  free(s->input.note);
  free(s->input.where);
  struct ni_counts *counts[] = {&s->input.bad_by_reason, &s->input.losses_by_cause, &s->input.out_of_range_by,
                                &s->input.problems_by};
  for (int k = 0; k < 4; k++) {
    for (size_t i = 0; i < counts[k]->n; i++)
      free((char *)counts[k]->item[i].name);
    free(counts[k]->item);
  }
  free(s->cell);
  free(s->group);
  free(s->mix);
  free(s->rolled);
  free(s->comm);
  free(s->seat);
  free(s->long_waits);
  free(s->crossing);
  free(s->process);
  free(s->host);
  free(s->by_comm);
  free(s->by_process);
  free(s->by_host);
  free(s->by_log_group);
  free(s->outlier);
  free(s->pair);
  ni_beside_free(&s->beside);
  free(s->sent);
  for (size_t i = 0; i < s->n_findings; i++) {
    free(s->finding[i].process);
    free(s->finding[i].moment);
  }
  free(s->step);
  ni_bucket_free(&s->buckets.records);
  ni_bucket_free(&s->buckets.rolled);
  ni_tag_sums_free(&s->tag_sums);
  free(s->tag);
  ni_index_free(&s->buckets.hosts.at_hash);
  free(s->buckets.hosts.row);
  free(s->buckets.hosts.now);
  free(s->heat.relative);
  free(s->heat.count);
  if (s->memory)
    ni_names_free(s->memory);
  free(s->memory);
  *s = (struct ni_summary){0};
}
