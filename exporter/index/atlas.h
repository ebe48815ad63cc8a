/*
 * The index: what was learned of logs when they were read, so that the next command reads less. Users never
 * need it and never have to think of it; docs/index.md says what they see.
 *
 * One index for each folder of logs (shelf.h), in NI_ATLAS_FOLDER beside them; where nobody may write there,
 * in the user's cache. Of each log: its map (exporter/input/granules.h), its account (ledger.h) as all of its
 * lines gave it, and sums, if they were asked for.
 *
 * States of a log, told at ni_atlas_open():
 *
 *   fresh    size, mtime, ctime and inode are those of the index, or else the bytes are, by the CRC-32 of
 *            each granule
 *   grown    longer; the first and the last granule have their CRC-32, and the tail can be read alone
 *   stale    anything else, or not in the index: the log is read as if there were none, and mapped meanwhile
 *
 * A log whose ctime is younger than two seconds when it is looked at may change unseen within the tick of the
 * clock; its entry says so, and the next command compares bytes.
 *
 * What a command reads of a fresh or grown log, in this order (ni_atlas_mode()):
 *
 *   account   nothing: what the ledger and tables of names need of all lines comes from the index
 *   granules  those that may hold a wanted operation, each checked by its CRC-32 first; the ledger takes no
 *             line of them
 *   tail      of a grown log: as if read without an index; the map and the account go on from those of the
 *             index
 *
 * Whoever reads decides as always which records it wants; an index only says where none can be. So results
 * are the same to the byte. Where a promise could break (a log that cannot be entered in its middle, an
 * account that does not come back as it was put in), the log is read whole.
 *
 * Who keeps something else of a log than its account (`hang`: hang/standing.h) has an index of his own beside
 * that one, opt.name, and reads by himself: ni_atlas_known() says what is there and where to go on,
 * ni_atlas_brief() gives a map for it, ni_atlas_learn() takes both. For that is written often, and the other
 * one is large.
 *
 * Whose index is believed: that of the log's owner, of the reader, or of root: each could as well have
 * changed what is read or who reads. Others are passed over with a note. Root writes none into a folder of
 * another user (ni_out_dir()).
 *
 * Written: by ni_atlas_close(), if what was asked for came to its end, for logs that were read to their end.
 * Of one that grew meanwhile the entry is what it was up to there: grown, the next time. A by-product only
 * where the logs have NI_ATLAS_LEAST bytes together: smaller ones are read in no time. What cannot be written
 * is told once on stderr and changes no exit code.
 *
 * Threads: open and close by the main thread; _plan by it, with helpers; _mode, _begin, _account, _map, and
 * _known, _brief, _learn, by whoever reads the part.
 * Ownership: ni_atlas_close() frees all. NULL for an atlas is none: everything is read.
 */
#ifndef NI_ATLAS_H
#define NI_ATLAS_H

#include "exporter/base/bytes/wire.h"
#include "exporter/input/filters.h"
#include "exporter/input/granules.h"
#include "exporter/input/scan_files.h"
#include "exporter/model/ledger/read.h"

#define NI_ATLAS_FOLDER ".nccl-inspector-index"
#define NI_ATLAS_LEAST (8u << 20)

struct ni_atlas_options {
  const char *dir;  /* --index-dir: NULL: beside the logs, or the cache */
  const char *name; /* NULL: of maps and accounts; else of something else */
  bool off, reindex;
  /* set by the command: ni_atlas_log_map() will be asked; with `off`, too, and then nothing is written */
  bool maps;
};

struct ni_atlas;

/* who: for messages. always: also for few bytes. *out may be NULL after 0: there is none. 0 or -ENOMEM. */
int ni_atlas_open(struct ni_atlas **out, const char *who, const struct ni_files *files,
                  const struct ni_atlas_options *o, bool always);
/* done: all of what was planned was read, so what was learned is kept. how: NULL, or where the counts go. */
struct ni_atlas_counts {
  uint64_t fresh, grown, stale, kept, failed;
};
void ni_atlas_close(struct ni_atlas *a, bool done, struct ni_atlas_counts *how);

/* What a command wants of the records; as its own filters say. */
struct ni_atlas_wants {
  int64_t since_us, until_us; /* both inside */
  const struct ni_words *comm, *host, *coll;
  const struct ni_ranks *rank, *job_rank, *sn, *size;
  bool records; /* false: nothing but the account */
  bool rollups; /* roll-up lines of wanted contexts and functions are wanted as well */
  bool proxies; /* lines of the proxy are wanted: logs that have some are read whole */
  /*
   * Sums are wanted, of all records: those that the index has none of are read. Set: says whether bytes of so
   * many records are sound.
   */
  bool (*sums)(const uint8_t *bytes, size_t n, uint64_t records);
};

/*
 * Plans as ni_scan_plan(plan, files, true, jobs); what is known of fresh and grown logs need not be read. w
 * NULL: read everything.
 */
int ni_atlas_plan(struct ni_atlas *a, struct ni_scan_plan *plan, const struct ni_files *files, unsigned jobs,
                  const struct ni_atlas_wants *w);

/*
 * What the index has of a log, and is not the account. bytes: until ni_atlas_close(); with a state other than
 * stale, as is end.
 */
enum ni_atlas_state { NI_ATLAS_STALE, NI_ATLAS_GROWN, NI_ATLAS_FRESH }; /* a later one is better */
struct ni_atlas_known {
  enum ni_atlas_state state;
  const uint8_t *bytes;
  size_t n;
  uint64_t end; /* of the log, where those end */
};
struct ni_atlas_known ni_atlas_known(const struct ni_atlas *a, size_t file_no);
/*
 * The map that the scan is to fill, on from known.end or, whole, from the beginning. NULL: none is wanted.
 * Else ni_granules_free().
 */
struct ni_granules *ni_atlas_brief(struct ni_atlas *a, size_t file_no, bool whole);
/* The log was read to its end: its map, and what is to be kept with it, which is the atlas's from now on. */
void ni_atlas_learn(struct ni_atlas *a, size_t file_no, struct ni_granules *g, struct ni_wire *part);

enum ni_atlas_mode { NI_ATLAS_WHOLE, NI_ATLAS_ACCOUNT, NI_ATLAS_GRANULES, NI_ATLAS_TAIL };
enum ni_atlas_mode ni_atlas_mode(const struct ni_atlas *a, const struct ni_scan_part *p);
/*
 * Before a part of mode whole or tail is read: the map that the scan is to fill, which goes with its ledger;
 * NULL: none is wanted.
 */
struct ni_granules *ni_atlas_begin(struct ni_atlas *a, const struct ni_scan_part *p,
                                   struct ni_ledger *ledger);
/* The map of a part of mode account. Until ni_atlas_account(). */
const struct ni_granules *ni_atlas_map(const struct ni_atlas *a, const struct ni_scan_part *p);
/* The account of all lines that the index knows, for ni_ledgers_merge(): once, and the caller's. */
struct ni_ledger *ni_atlas_account(struct ni_atlas *a, const struct ni_scan_part *p);
/* For struct ni_ledgers. */
void ni_atlas_mapped(void *atlas, size_t file_no, struct ni_ledger *of_file);
/* The earliest and the latest time of a fresh log's operations. false: its lines must be asked. */
bool ni_atlas_times(const struct ni_atlas *a, size_t file_no, int64_t *first_us, int64_t *last_us);
/*
 * What somebody has added up of a log's records, as bytes that only he knows (sums/approx/log_sums.h). It is
 * of the records up to a border of granules: what came behind that is read when sums are wanted the next
 * time, and the old ones stay meanwhile.
 *
 * After ni_atlas_plan() with wants.sums: those that were planned with; NULL: none, all is read. Until
 * ni_atlas_close().
 */
const uint8_t *ni_atlas_sums(const struct ni_atlas *a, size_t file_no, size_t *n);
/* All of the log is in these. The bytes are copied. */
void ni_atlas_learn_sums(struct ni_atlas *a, size_t file_no, const struct ni_wire *sums);
/*
 * After ni_atlas_read_ledger(), with opt.maps: the map of a log as the index has it or would have it; NULL:
 * read it whole. Main thread.
 */
const struct ni_granules *ni_atlas_log_map(const struct ni_atlas *a, size_t file_no);
/* After that, where several processes share the logs that no index knows (nccl-inspector-mpi): what the next
 * entry of a log has, or that there is none. Loading, after ni_atlas_open() with the same files: from now on
 * the log counts as known. */
void ni_atlas_wire_made(struct ni_wire *w, struct ni_atlas *a, size_t file_no);
/* The granule still has the bytes that the map knows. *fd -1: not open yet; the caller's to close. */
bool ni_atlas_is_intact(const char *path, int *fd, const struct ni_granule *x);
/* The context, in that file, is wanted by w; the filters remember that they were asked. */
bool ni_atlas_wants_context(const struct ni_atlas_wants *w, const struct ni_file *file,
                            const struct ni_ident *ident, const struct ni_meta *meta);

/*
 * All logs into their accounts, for those who want nothing else of the lines; join: those into one. 0 or
 * -errno.
 */
int ni_atlas_read_accounts(struct ni_atlas *a, struct ni_ledgers *l, const struct ni_files *files,
                           unsigned jobs, struct ni_progress *progress, bool join);
/* All logs into one account, with the index. */
int ni_atlas_read_ledger(struct ni_atlas *a, struct ni_ledger *c, const struct ni_files *files, unsigned jobs,
                         struct ni_progress *progress);

#endif
