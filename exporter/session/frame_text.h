/*
 * A frame as JSON text, in both forms (docs/cluster.md): native, and with gsprof's keys and scales. And the
 * columns that frames have.
 *
 *   ni_frame ─▶ each client's GPUs and NICs find their columns
 *       ─▶ ni_frame_put(): "time":...,"gpu_id":[...],...}
 *                                                                  └─▶ ni_sums: of each column, for the end
 *
 * A column is a GPU, a client or a NIC, known by its text; columns only grow. After a restart those of the
 * last frame are there before anybody claims them: who has the same text gets the same place. The text is the
 * same for all sessions; what differs stands before it (writer.h). Numbers have two decimals, or three;
 * beyond 10^15 they are none. One thread per struct; plain memory, for ni_frame_text_free().
 */
#ifndef NI_FRAME_TEXT_H
#define NI_FRAME_TEXT_H

#include "exporter/session/grid.h"

enum ni_group { NI_GPUS, NI_CLIENTS, NI_NICS, NI_GROUPS };

struct ni_buffer { /* all 0: empty */
  char *text;
  size_t n, cap;
  bool failed; /* there was no memory: the text is of no use */
};
/* Room for so many bytes more, at text + n; NULL without memory. */
char *ni_buffer_room(struct ni_buffer *b, size_t more);
void ni_buffer_put(struct ni_buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct ni_columns {
  /* id: as JSON has it, with quotes; owner 0: nobody has claimed it */
  struct {
    char *id;
    uint32_t hash, owner;
  } *at;
  size_t n, cap, free, cursor;
};
/* The column of a text that nobody has claimed, else a new one; owner's from now on. -1 without memory. */
int64_t ni_column_claim(struct ni_columns *c, const char *text, uint32_t owner);
/* The column of that text, whoever has it; of several the one behind so many others of it. -1: none. */
int64_t ni_column_find(const struct ni_columns *c, const char *text, uint32_t behind);
/* Nobody has claimed any. */
void ni_columns_release(struct ni_columns *c);

/* gpu_util and gpu_memory of each GPU; dram_util and disk_util of each client; as frames have them */
struct ni_sums {
  struct {
    double sum[2];
    uint64_t n[2];
  } *of[2];
  size_t cap[2];
};
/* false without memory. */
bool ni_sums_room(struct ni_sums *s, enum ni_group group, size_t columns);
/* Those of a group; room is there. */
void ni_sums_add(struct ni_sums *to, const struct ni_sums *more, enum ni_group group);
void ni_sums_free(struct ni_sums *s);

struct ni_frame_text { /* all 0 but the flags: no columns */
  bool gsprof, bandwidth, nvlink;
  struct ni_columns of[NI_GROUPS];
  struct ni_known **known; /* by number of the client: where its GPUs and NICs stand */
  size_t cap_known;
  /* what stands in each column of this frame: ni_sample_gpu, ni_frame_client, ni_sample_nic; or NULL */
  const void **at[NI_GROUPS];
  size_t cap_at[NI_GROUPS];
};
/* Behind what is in the buffer. */
void ni_frame_put(struct ni_frame_text *t, const struct ni_frame *f, struct ni_buffer *out);
/*
 * A late sample of one client as a frame of its own, by `late`, which has no columns: with "gpu_behind" and
 * "nic_behind", which say of each of its columns how many others of the same text `frames` has before it. Two
 * clients of one host have GPUs of one text.
 */
void ni_late_put(struct ni_frame_text *late, struct ni_frame_text *frames, const struct ni_frame_client *of,
                 int64_t tick_ns, struct ni_buffer *out);
/* Adds the frame that was written last; false without memory. */
bool ni_frame_sum(const struct ni_frame_text *t, struct ni_sums *s);
/* No columns. */
void ni_frame_text_free(struct ni_frame_text *t);

/* The group of a key whose array has a value for each column; NI_GROUPS: another key. *none: what stands
 * where there is no value. sum: 0 or 1 where ni_sums has it, else -1. */
enum ni_group ni_frame_key(const char *name, const char **none, int *sum);

#endif
