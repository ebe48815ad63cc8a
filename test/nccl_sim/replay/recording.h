/*
 * A recorded run in memory, in the order of its calls, from either format: our own (recording_format.h) or
 * the JSON lines of recorded real callbacks. One thread; everything belongs to the struct and lives until the
 * program ends. Failure: a file that is neither ends the program with a message; a cut tail of our own format
 * is said and the rest is used.
 */
#ifndef NI_SIM_RECORDING_H
#define NI_SIM_RECORDING_H

#include "recording_format.h"
#include "test/nccl_sim/core/sim.h"

struct ni_call_rec {
  enum ni_rec_kind kind;
  uint64_t at_ns;
  uint32_t order; /* in the file, for equal times */
  uint32_t thread;
  int event; /* START, STOP, STATE: index of the event; INIT, FINALIZE: of the communicator */
  int state;
  bool has_args;
  uint64_t args;
};

struct ni_event_rec {
  struct ni_prof_descr_v7 d; /* strings live for ever; parent pointers are not used */
  int comm;                  /* whose context it was given; -1 unknown */
  int parent, parent_group;  /* events; -1 none */
};

struct ni_comm_rec {
  uint64_t hash;
  int n_nodes, n_ranks, rank;
  const char *name; /* NULL: none */
};

struct ni_recording {
  struct ni_call_rec *calls;
  struct ni_event_rec *events;
  struct ni_comm_rec *comms;
  int n_calls, n_events, n_comms, n_threads;
  uint32_t threads[256];
};

void ni_recording_read(struct ni_recording *r, const char *path);
/* JSON lines; `text` is the whole file, ended by a NUL. */
void ni_recording_json(struct ni_recording *r, const char *path, char *text);
/* Building blocks of both. */
struct ni_call_rec *ni_recording_call(struct ni_recording *r);
int ni_recording_event(struct ni_recording *r);
int ni_recording_comm(struct ni_recording *r);
/* The one copy of a text: NCCL's names are constants, and plugins may know them by their address. */
const char *ni_recording_string(const char *text, size_t n);

#endif
