/*
 * Text to blocks: each block is one or more whole gzip members (or, in plain mode, the text itself), ready
 * for one write().
 *
 *   filling ──append*──▶ filling ──finish──▶ finished ──release (it is on disk)──▶ filling
 *                                               └─ append: -EBUSY; the block stays for another write()
 *
 * Text is compressed as it is appended, 256 KiB at a time, so that finish costs little and memory stays near
 * the compressed size. All memory of the codec (gz_codec.h) is taken at create; later only the output buffer
 * grows, up to NI_GZ_MAX_BYTES.
 *
 * Threads: one at a time (the dump thread, or whoever holds its role at exit). Ownership: create/free; a
 * finished block belongs to the writer and stays valid until release or free. Failure: 0 or negative errno.
 * After an error of append nothing of that call was taken; after an error of finish the text is still there:
 * both may be called again.
 */
#ifndef NI_GZ_WRITER_H
#define NI_GZ_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gz_codec.h"

#define NI_GZ_MAX_BYTES (64u << 20) /* of one block, compressed */

struct ni_gz;

/*
 * compress: gzip at `level`, NI_CODEC_LEVEL or 1..9; otherwise plain text and level is ignored. NULL: no
 * memory.
 */
struct ni_gz *ni_gz_create(bool compress, int level);
void ni_gz_free(struct ni_gz *gz); /* NULL is accepted */

/* Adds text, whole lines. -EBUSY: a finished block waits; -EFBIG: the block would exceed NI_GZ_MAX_BYTES,
 * finish it first; -ENOMEM: the buffer cannot grow. */
int ni_gz_append(struct ni_gz *gz, const void *data, size_t n);

/* Makes sure that n bytes of text more will be taken, in any number of appends. Errors as ni_gz_append. */
int ni_gz_reserve(struct ni_gz *gz, size_t n);

/* Ends the block: *data and *n are all of it. Nothing appended since the last release: *n = 0, no member.
 * Called again before release it gives the same block again. -ENOMEM: the buffer cannot grow, the text is
 * kept. */
int ni_gz_finish(struct ni_gz *gz, const void **data, size_t *n);

/*
 * The finished block is on disk, or what was appended is given up and counted as lost: forget it, start the
 * next.
 */
void ni_gz_release(struct ni_gz *gz);

/* Bytes of text appended since the last release, and whether a finished block waits. */
size_t ni_gz_text_bytes(const struct ni_gz *gz);
/*
 * About how long the block would be, were it finished now: what is not compressed yet counts as the last
 * member came out.
 */
size_t ni_gz_bytes(const struct ni_gz *gz);
bool ni_gz_finished(const struct ni_gz *gz);

#endif
