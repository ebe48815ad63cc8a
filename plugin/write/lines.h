/*
 * The lines beside the operations: who wrote the log, with which clocks, and how the accounting closes. Dump
 * role; into the open block. A control line is left out where NCCL_INSPECTOR_DUMP_CONTROL_LINES is 0.
 */
#ifndef NI_LINES_H
#define NI_LINES_H

#include "format/line_write.h"
#include "writer.h"

/*
 * Who the communicator is, when that came after init (v1 to v3). force: make an identity up. 1: it is known.
 */
int ni_lines_identify(struct ni_writer *w, struct ni_comm_writer *s, int force);
/* Its comm line; `announced` says whether it fitted. */
void ni_lines_comm(struct ni_writer *w, struct ni_comm_writer *s);
void ni_lines_stats(struct ni_writer *w, struct ni_comm_writer *s, int final);
/* count operations are not going to be written, whose numbers lie in from..to. */
void ni_lines_given_up(struct ni_writer *w, struct ni_comm_writer *s, int kind, uint64_t count, uint64_t from,
                       uint64_t to);
/* What callbacks have lost since the last call: gap lines, the accounting, a warning. */
void ni_lines_gaps(struct ni_writer *w, struct ni_comm_writer *s);
/* Everything a communicator says last; its records are in the block already. */
void ni_lines_end(struct ni_writer *w, struct ni_comm_writer *s, enum ni_end end);
void ni_lines_clock(struct ni_writer *w);
/* Before a record with GPU times: a clock line when the offset of the GPU's clock in use is not the one last
 * stated, so that readers know which offset each record was written with. 0, or ni_block_put()'s error: the
 * record must wait, too. */
int ni_lines_gpu_offset(struct ni_writer *w, struct ni_comm_writer *s);
/* Channels that came late (late.h). */
void ni_lines_late(struct ni_writer *w);
/* The process's last lines. end: EXIT: its exit handler has it said; else every communicator was closed. */
void ni_lines_process_end(struct ni_writer *w, enum ni_end end);
void ni_lines_note(struct ni_writer *w, const char *text);
void ni_lines_control(struct ni_writer *w, const struct ni_control_line *in);
/* The process line and the comm line of a communicator, in w->line; their length. */
size_t ni_lines_process(struct ni_writer *w);
size_t ni_lines_comm_text(struct ni_writer *w, struct ni_comm_writer *s);
/*
 * Prepares what every new file of `out` begins with: the process, and with comms the communicators alive. 0
 * or -errno.
 */
int ni_lines_head(struct ni_writer *w, struct ni_out *out, int comms);

#endif
