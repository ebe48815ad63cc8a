// Plays a job: CPU threads, streams, NCCL operations, and the bytes on shared links.
#pragma once

#include <vector>

#include "job.h"

struct Record {
  double enqueue, start, end;  // seconds of the run
  int64_t bytes;
  int comm;
  Func func;
  int peer;     // of a message, else -1
  int sn;       // number per communicator and function; messages: per communicator
  int call_sn;  // number per communicator over all functions
  int root;
  const char *type;
};

struct Moment {
  int cause, rank, step;
  double begin, end;
};

struct Outcome {
  double run_s = 0;
  std::vector<double> step_begin;            // when the first rank began a step
  std::vector<std::vector<Record>> records;  // by rank
  std::vector<Moment> moments;               // pauses as they took place
};

Outcome play(const Job &job, const Effects &effects, int steps, bool keep_records);
