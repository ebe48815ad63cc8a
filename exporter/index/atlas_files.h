/*
 * What the atlas holds, shared by atlas.c (what is known), atlas_read.c (what is read), atlas_keep.c (what is
 * written).
 */
#ifndef NI_ATLAS_FILES_H
#define NI_ATLAS_FILES_H

#include "atlas.h"
#include "shelf.h"

struct ni_atlas_file {
  const struct ni_file *file;
  struct ni_atlas_folder *folder;
  struct ni_shelf_stat stat;          /* as the next entry has it */
  const struct ni_shelf_entry *entry; /* with a state other than stale */
  struct ni_granules *map;            /* the same, until the account is given */
  struct ni_ledger *account;          /* the same, once it is planned */
  enum ni_atlas_state state;
  bool known;        /* this plan uses map and account */
  int granule_parts; /* of those after the first */
  /* byte of the log up to which the entry's sums go; 0: this plan uses none */
  uint64_t summed;
  uint8_t *sums; /* these, n_sums bytes */
  size_t n_sums;
  bool made;     /* below is what the next entry has */
  bool may_grow; /* ... also where the log has grown meanwhile */
  struct ni_wire new_map, new_account, new_sums;
  uint64_t end;                  /* of the log, where they end */
  struct ni_shelf_entry brought; /* the same, as the entry: another process has read the log */
};

struct ni_atlas_folder {
  char *path;               /* of the logs: "." or what stands before their names */
  struct ni_shelf shelf[2]; /* beside them, or of --index-dir; in the cache */
};
enum { NI_SHELF_NEAR, NI_SHELF_CACHE };

/*
 * Sums are not kept where with them the entry would have more than one in so many bytes of the log, or
 * unpacked they have so many.
 */
enum { NI_SUMS_SHARE = 50, NI_SUMS_MAX = 64 << 20 };

struct ni_atlas {
  const char *who;
  const struct ni_files *files;
  struct ni_atlas_options opt;
  struct ni_atlas_file *file;
  struct ni_atlas_folder *folder;
  size_t n_folders, cap_folders;
  bool build, said;
};

/* Where a folder's index lies: folder and name are the caller's to free. false: there is no such place. */
bool ni_atlas_place(const struct ni_atlas *a, const struct ni_atlas_folder *f, int shelf, char **folder,
                    char **name);
/* CRC-32 of a part of an open file. 0 or -errno; -ENODATA: it is shorter. */
int ni_atlas_sum(int fd, uint64_t at, uint64_t bytes, uint32_t *crc);
/* Says it on stderr, the first time alone. */
void ni_atlas_say(struct ni_atlas *a, const char *folder, const char *what, const char *why);
void ni_atlas_keep(struct ni_atlas *a, struct ni_atlas_counts *how);

#endif
