#include "suspects.h"

#include <stdio.h>

#include "lines.h"
#include "test/jobs/plan/fault.h"

const char *nj_level(const struct nj_fault *f) {
  if (f->who == NJ_ALL)
    return "job";
  if (f->who == NJ_REPLICA_RANKS)
    return "replica";
  if (f->who == NJ_HOST)
    return "host";
  switch (f->thing) {
    case NJ_NIC:
      return "nic";
    case NJ_RAIL:
      return "rail";
    case NJ_NVLINK:
      return "nvlink";
    case NJ_CPU:
      return "host";
    case NJ_STAGE:
      return "stage";
    case NJ_PAIR:
      return "pair";
    case NJ_CONGESTION:
      return "fabric";
    default:
      return "rank";
  }
}

static bool has_host(const struct nj_comm *c, int host) {
  for (int i = 0; i < c->n_hosts; i++)
    if (c->host[i] == host)
      return true;
  return false;
}
static bool has_rank(const struct nj_comm *c, int rank) {
  for (int i = 0; i < c->n; i++)
    if (c->rank[i] == rank)
      return true;
  return false;
}
static bool messages(const struct nj_job *job, const struct nj_comm *c) {
  return c->role == 'p' || (c->role == 'e' && job->grouped_all_to_all);
}

/*
 * Whether the communicator's data goes over the link in question. The few bytes of the world beside TP are no
 * evidence.
 */
static bool crosses(const struct nj_job *job, const struct nj_comm *c, const struct nj_fault *f) {
  if (f->thing == NJ_NVLINK)
    return has_host(c, f->host) && (c->role == 't' || c->n_hosts == 1);
  if (c->n_hosts < 2 || (c->role == 'w' && job->tp > 1))
    return false;
  if (f->thing == NJ_NIC)
    return has_host(c, f->host);
  if (f->thing == NJ_RAIL)
    return has_rank(c, f->rank);
  if (f->thing == NJ_PAIR)
    return f->rank >= 0 ? has_rank(c, f->rank) && has_rank(c, f->rank_b)
                        : has_host(c, f->host) && has_host(c, f->host_b);
  return f->thing == NJ_CONGESTION;
}

/* Hosts that `host` exchanges bulk data with: the only one, or -1 for more. */
static int only_partner(const struct nj_job *job, int host) {
  int partner = -2;
  for (int k = 0; k < job->n_comms; k++) {
    const struct nj_comm *c = &job->comm[k];
    if (c->n_hosts < 2 || c->role == 'w')
      continue;
    for (int i = 0; i < c->n_hosts; i++) {
      int next = c->host[(i + 1) % c->n_hosts],
          there = c->host[i] == host ? next
          : next == host             ? c->host[i]
                                     : -1;
      if (c->role == 'p' && i == c->n_hosts - 1)
        continue; /* the last stage does not send to the first */
      if (there < 0 || there == host)
        continue;
      partner = partner == -2 || partner == there ? there : -1;
    }
  }
  return partner < 0 ? -1 : partner;
}

/*
 * Whether logs as they were written still show it: the ranks' own logs are there, and what tells by which
 * communicator.
 */
static bool shown(const struct nj_job *job, const struct nj_fault *f) {
  const struct nj_weather *w = &job->weather;
  bool link = f->thing == NJ_NIC || f->thing == NJ_RAIL || f->thing == NJ_PAIR || f->thing == NJ_NVLINK;
  bool rare = f->kind == NJ_INTERMITTENT || f->kind == NJ_PAUSES || f->kind == NJ_GC;
  int of = 0, there = 0;
  for (int r = 0; r < job->world; r++) {
    bool its = f->rank >= 0 ? r == f->rank || r == f->rank_b
        : f->host >= 0      ? job->rank[r].host == f->host || job->rank[r].host == f->host_b
        : f->stage >= 0     ? job->rank[r].pp == f->stage
                            : f->who == NJ_RANK || nj_concerns(job, f, r);
    of += its;
    there += its && !job->missing[r];
  }
  if (2 * there < of || (f->rank >= 0 && there < of))
    return false;
  if (rare && (job->steps < 60 || w->sample > 4))
    return false;
  if (w->alone_one)
    return false;
  /* Beside tensor parallelism all other communicators see a group of ranks as late as its last one. */
  if (w->alone && !link)
    return w->alone == (job->tp > 1 ? 't' : 'w') && f->kind != NJ_STAGE;
  return !(f->kind == NJ_STAGE && w->no_p2p);
}

/*
 * It is recorded, and so that its transfers are known. A transfer is what both sides have in common: of
 * messages that were sampled each side kept others.
 */
static bool seen(const struct nj_job *job, const struct nj_comm *c) {
  const bool kept = !job->weather.no_p2p && job->weather.sample < 2;
  return !job->unrecorded[c - job->comm] && (kept || !messages(job, c));
}

/*
 * The only other rank that it exchanges bulk data with across hosts, as far as that is recorded: then its NIC
 * and the way there look the same. -1: there are more. So it is in C, on the first and the last stage, and in
 * B without messages.
 */
static int only_partner_rank(const struct nj_job *job, int rank) {
  int partner = -1;
  for (int k = 0; k < job->n_comms; k++) {
    const struct nj_comm *c = &job->comm[k];
    if (!seen(job, c) || c->n_hosts < 2 || c->role == 'w' || !has_rank(c, rank))
      continue;
    if (c->role != 'p' && c->n > 2)
      return -1;
    for (int i = 0; i < c->n; i++) {
      const bool next = (i > 0 && c->rank[i - 1] == rank) || (i + 1 < c->n && c->rank[i + 1] == rank);
      if (!next || job->rank[c->rank[i]].host == job->rank[rank].host)
        continue;
      if (partner >= 0 && partner != c->rank[i])
        return -1;
      partner = c->rank[i];
    }
  }
  return partner;
}

/*
 * Of congestion: transfers between hosts of which it is known that nobody was late to them. One of whose
 * ranks has no log may be that one's.
 */
static bool crossing_seen(const struct nj_job *job) {
  for (int k = 0; k < job->n_comms; k++) {
    const struct nj_comm *c = &job->comm[k];
    bool all = seen(job, c) && c->n_hosts > 1 && !(c->role == 'w' && job->tp > 1);
    for (int i = 0; i < c->n && !messages(job, c); i++)
      all = all && !job->missing[c->rank[i]];
    if (all)
      return true;
  }
  return false;
}

bool nj_identifiable(const struct nj_job *job, const struct nj_fault *f) {
  if (!shown(job, f))
    return false;
  bool other = false, any = false;
  /* Nobody is to blame for what all do at once; irregular requests promise nothing. */
  if (f->kind == NJ_EVALUATION || f->kind == NJ_INFERENCE)
    return false;
  /* Of fewer than three the operation that the others waited in is in the logs. */
  const int sample = job->weather.sample > 1 ? job->weather.sample : 1;
  if (f->period && job->steps / f->period / sample < 3)
    return false;
  if (f->thing == NJ_CONGESTION)
    return crossing_seen(job);
  if (f->thing == NJ_STAGE || f->thing == NJ_CPU)
    return true;
  if (f->thing == NJ_NVLINK) {
    for (int k = 0; k < job->n_comms; k++)
      any = any || (seen(job, &job->comm[k]) && crosses(job, &job->comm[k], f));
    return any;
  }
  if (f->thing != NJ_NIC && f->thing != NJ_RAIL && f->thing != NJ_PAIR)
    return true;
  for (int k = 0; k < job->n_comms; k++) {
    const struct nj_comm *c = &job->comm[k];
    if (!seen(job, c) || c->n_hosts < 2 || (c->role == 'w' && job->tp > 1))
      continue;
    if (!crosses(job, c, f))
      other = true;
    else
      any = true;
    if (messages(job, c))
      other = true;
  }
  return other && any;
}

static void subject(struct ni_json *j, const char *level, int rank, int rank_b, int host, int host_b) {
  char name[16];
  ni_json_object(j, NULL);
  ni_json_text(j, "level", level);
  if (rank >= 0) {
    ni_json_array(j, "ranks");
    ni_json_i64(j, NULL, rank);
    if (rank_b >= 0)
      ni_json_i64(j, NULL, rank_b);
    ni_json_end_array(j);
  }
  if (host >= 0) {
    ni_json_array(j, "hosts");
    ni_json_text(j, NULL, nj_host_name(host, name));
    if (host_b >= 0)
      ni_json_text(j, NULL, nj_host_name(host_b, name));
    ni_json_end_array(j);
  }
  ni_json_end_object(j);
}

/* One communicator alone carries data between hosts, as far as logs say: then that is all that they tell. */
static bool one_crosses(const struct nj_job *job, const struct nj_fault *f) {
  int n = 0;
  for (int k = 0; k < job->n_comms; k++)
    n += crosses(job, &job->comm[k], f) && seen(job, &job->comm[k]);
  return n == 1;
}

static void comm_subjects(struct ni_json *j, const struct nj_job *job, const struct nj_fault *f) {
  for (int k = 0; k < job->n_comms; k++) {
    if (!crosses(job, &job->comm[k], f))
      continue;
    ni_json_object(j, NULL);
    ni_json_text(j, "level", "communicator");
    ni_json_hex_text(j, "communicator", job->comm[k].hash);
    ni_json_end_object(j);
  }
}

static void stage_hosts(struct ni_json *j, const struct nj_job *job, int stage, bool each) {
  char name[16];
  for (int h = 0; h < job->hosts; h++) {
    bool in = false;
    for (int r = h * NJ_HOST_GPUS; r < (h + 1) * NJ_HOST_GPUS; r++)
      in = in || job->rank[r].pp == stage;
    if (in && each)
      subject(j, "host", -1, -1, h, -1);
    else if (in)
      ni_json_text(j, NULL, nj_host_name(h, name));
  }
}

static void stage_ranks(struct ni_json *j, const struct nj_job *job, int stage) {
  for (int r = 0; r < job->world; r++)
    if (job->rank[r].pp == stage)
      ni_json_i64(j, NULL, r);
}

/* Level, and the ranks that a cause of several concerns. */
static void concerned(struct ni_json *j, const struct nj_job *job, const struct nj_fault *f,
                      const char *level) {
  ni_json_object(j, NULL);
  ni_json_text(j, "level", level);
  ni_json_array(j, "ranks");
  for (int r = 0; r < job->world; r++)
    if (nj_concerns(job, f, r))
      ni_json_i64(j, NULL, r);
  ni_json_end_array(j);
  ni_json_end_object(j);
}

static void bare(struct ni_json *j, const char *level) {
  ni_json_object(j, NULL);
  ni_json_text(j, "level", level);
  ni_json_end_object(j);
}

static void accepted_of(struct ni_json *j, const struct nj_job *job, const struct nj_fault *f) {
  if (f->who == NJ_HOST)
    subject(j, "host", -1, -1, f->host, -1);
  else if (f->who == NJ_ALL) {
    bare(j, "job");
    concerned(j, job, f, "rank");
  } else
    concerned(j, job, f, nj_level(f));
}

/* Each of them alone; hosts and communicators that are theirs. */
static void related_of(struct ni_json *j, const struct nj_job *job, const struct nj_fault *f) {
  int host = -1;
  for (int r = 0; r < job->world && f->who != NJ_ALL; r++) {
    if (!nj_concerns(job, f, r))
      continue;
    subject(j, "rank", r, -1, -1, -1);
    if (job->rank[r].host != host)
      subject(j, "host", -1, -1, job->rank[r].host, -1);
    host = job->rank[r].host;
  }
  for (int k = 0; k < job->n_comms && f->who == NJ_REPLICA_RANKS; k++) {
    const struct nj_comm *c = &job->comm[k];
    if ((c->role != 't' && c->role != 'p') || !nj_concerns(job, f, c->rank[0]))
      continue;
    ni_json_object(j, NULL);
    ni_json_text(j, "level", "communicator");
    ni_json_hex_text(j, "communicator", c->hash);
    ni_json_end_object(j);
  }
}

static void accepted(struct ni_json *j, const struct nj_job *job, const struct nj_fault *f) {
  if (f->who != NJ_RANK) {
    accepted_of(j, job, f);
    return;
  }
  switch (f->thing) {
    case NJ_NIC: {
      int partner = only_partner(job, f->host);
      subject(j, "nic", -1, -1, f->host, -1);
      if (partner >= 0)
        subject(j, "pair", -1, -1, f->host, partner);
      break;
    }
    case NJ_RAIL:
      subject(j, "rail", f->rank, -1, -1, -1);
      subject(j, "nic", f->rank, -1, -1, -1);
      /* Where one communicator alone uses it, each of its NICs may be it. */
      if (job->pp < 2)
        comm_subjects(j, job, f);
      if (only_partner_rank(job, f->rank) >= 0)
        subject(j, "pair", f->rank, only_partner_rank(job, f->rank), -1, -1);
      break;
    case NJ_NVLINK:
      subject(j, "nvlink", -1, -1, f->host, -1);
      subject(j, "host", -1, -1, f->host, -1);
      break;
    case NJ_CPU:
      subject(j, "host", -1, -1, f->host, -1);
      break;
    case NJ_PAIR:
      subject(j, "pair", f->rank, f->rank_b, f->rank < 0 ? f->host : -1, f->host_b);
      /* The NICs of a host that talks to no other may be it as well. */
      if (f->rank < 0 && only_partner(job, f->host) == f->host_b)
        subject(j, "nic", -1, -1, f->host, -1);
      if (f->rank < 0 && only_partner(job, f->host_b) == f->host)
        subject(j, "nic", -1, -1, f->host_b, -1);
      if (f->rank >= 0 && only_partner_rank(job, f->rank) == f->rank_b)
        subject(j, "rail", f->rank, -1, -1, -1);
      if (f->rank >= 0 && only_partner_rank(job, f->rank_b) == f->rank)
        subject(j, "rail", f->rank_b, -1, -1, -1);
      if (f->rank >= 0 && job->pp < 2 && !job->grouped_all_to_all)
        comm_subjects(j, job, f);
      break;
    case NJ_CONGESTION:
      subject(j, "fabric", -1, -1, -1, -1);
      if (one_crosses(job, f))
        comm_subjects(j, job, f);
      break;
    case NJ_STAGE:
      ni_json_object(j, NULL);
      ni_json_text(j, "level", "stage");
      ni_json_array(j, "ranks");
      stage_ranks(j, job, f->stage);
      ni_json_end_array(j);
      ni_json_end_object(j);
      if (job->layout != 'P') { /* whole hosts are a stage's */
        ni_json_object(j, NULL);
        ni_json_text(j, "level", "stage");
        ni_json_array(j, "hosts");
        stage_hosts(j, job, f->stage, false);
        ni_json_end_array(j);
        ni_json_end_object(j);
      }
      /* A stage of one host is that host. */
      if (job->layout == 'C')
        stage_hosts(j, job, f->stage, true);
      break;
    default:
      subject(j, "rank", f->rank, -1, -1, -1);
  }
}

static void related(struct ni_json *j, const struct nj_job *job, const struct nj_fault *f) {
  if (f->who != NJ_RANK) {
    related_of(j, job, f);
    return;
  }
  int host = f->rank >= 0 ? job->rank[f->rank].host : f->host;
  bool link = f->thing == NJ_NIC || f->thing == NJ_RAIL || f->thing == NJ_PAIR || f->thing == NJ_NVLINK;
  if (link)
    comm_subjects(j, job, f);
  if (f->thing == NJ_CPU)
    for (int r = 0; r < job->world; r++)
      if (job->rank[r].host == f->host)
        subject(j, "rank", r, -1, -1, -1);
  if (f->thing == NJ_STAGE) {
    stage_hosts(j, job, f->stage, true);
    for (int r = 0; r < job->world; r++)
      if (job->rank[r].pp == f->stage)
        subject(j, "rank", r, -1, -1, -1);
  }
  if (f->thing == NJ_PAIR && f->rank >= 0)
    subject(j, "pair", -1, -1, f->host, f->host_b);
  if (f->thing == NJ_RAIL) {
    subject(j, "nic", -1, -1, host, -1);
    subject(j, "rank", f->rank, -1, -1, -1);
  }
  if (f->thing == NJ_NIC || f->thing == NJ_RAIL || nj_level(f)[0] == 'r')
    subject(j, "host", -1, -1, host, -1);
  if (f->thing == NJ_NIC && !nj_identifiable(job, f))
    subject(j, "fabric", -1, -1, -1, -1);
}

void nj_suspects(struct ni_json *j, const struct nj_job *job, const struct nj_fault *f) {
  ni_json_array(j, "communicators");
  for (int k = 0; k < job->n_comms; k++) {
    const struct nj_comm *c = &job->comm[k];
    bool its = f->rank >= 0 && f->thing != NJ_PAIR ? has_rank(c, f->rank) : crosses(job, c, f);
    if (its && !(f->thing == NJ_RAIL && c->n_hosts < 2))
      ni_json_hex_text(j, NULL, c->hash);
  }
  ni_json_end_array(j);
  if (f->thing == NJ_STAGE) {
    ni_json_i64(j, "stage", f->stage);
    ni_json_array(j, "stage_hosts");
    stage_hosts(j, job, f->stage, false);
    ni_json_end_array(j);
    ni_json_array(j, "stage_ranks");
    stage_ranks(j, job, f->stage);
    ni_json_end_array(j);
  }
  ni_json_array(j, "accept");
  accepted(j, job, f);
  ni_json_end_array(j);
  ni_json_array(j, "related");
  related(j, job, f);
  ni_json_end_array(j);
}
