/*
 * The event pool (plugin/slots/slot_pool.c): a free list with a tag raised at each pop, fresh slots from a bump word, and a
 * chunk that is installed by whoever finds none left. Two starters take slots, the dump thread gives them back.
 *
 * Checked: a slot belongs to one taker at a time; both starters get all they ask for; no chunk is lost.
 * Broken on purpose:  -DNO_TAG       the exchange of the free list compares the slot alone (ABA)
 *                     -DSPLIT_BUMP   slot and count are two words, stored one after the other
 *                     -DKEEP_CHUNK   who loses the race to install a chunk uses it all the same
 */
#define FIRST 2            /* slots of the first chunk: 1, 2 */
#define STEP 2             /* of each further chunk */
#define CHUNKS 4           /* chunks that the arena has: slots 3-4, 5-6, ... */
#define SLOTS (FIRST + STEP * CHUNKS)
#define ROUNDS 2
#define SLOT(w) ((w) & 15)
#define TAG(w) ((w) >> 4)

short head = 0;            /* slot | tag << 4 */
short bump = 1 + (FIRST << 4); /* next | left << 4 */
byte next[SLOTS + 1];
byte owner[SLOTS + 1];     /* 0: nobody */
byte arena_taken = 0;      /* chunks out of the arena */
byte arena_given = 0;      /* and back */
byte installed = 0;
byte back[4];              /* finished slots on their way to the dump thread */
byte n_back = 0, finished = 0;

#ifdef NO_TAG
#define CAS_HEAD(old, new, ok) atomic { if :: SLOT(head) == SLOT(old) -> head = new; ok = 1 :: else -> ok = 0 fi }
#else
#define CAS_HEAD(old, new, ok) atomic { if :: head == (old) -> head = new; ok = 1 :: else -> ok = 0 fi }
#endif

inline own(s) {
  atomic { assert(s != 0 && s <= SLOTS); assert(owner[s] == 0); owner[s] = _pid + 1 }
}

inline get(s) {
  s = 0;
  h = head;
  do
  :: SLOT(h) == 0 -> break
  :: else ->
     n = next[SLOT(h)];
     CAS_HEAD(h, n | ((TAG(h) + 1) << 4), ok);
     if
     :: ok -> s = SLOT(h); break
     :: else -> h = head
     fi
  od;
  if
  :: s == 0 ->
     b = bump;
     do
     :: TAG(b) > 0 ->
#ifdef SPLIT_BUMP
        s = SLOT(b);
        bump = (SLOT(b) + 1) | ((TAG(b) - 1) << 4);
        break
#else
        atomic { if :: bump == b -> bump = (SLOT(b) + 1) | ((TAG(b) - 1) << 4); ok = 1 :: else -> ok = 0 fi };
        if
        :: ok -> s = SLOT(b); break
        :: else -> b = bump
        fi
#endif
     :: else ->
        atomic { arena_taken++; assert(arena_taken <= CHUNKS); c = FIRST + STEP * (arena_taken - 1) + 1 };
#ifdef KEEP_CHUNK
        bump = (c + 1) | ((STEP - 1) << 4); ok = 1;
#else
        atomic { if :: bump == b -> bump = (c + 1) | ((STEP - 1) << 4); ok = 1 :: else -> ok = 0 fi };
#endif
        if
        :: ok -> installed++; s = c; break
        :: else -> arena_given++; b = bump
        fi
     od
  :: else
  fi
}

proctype starter() {
  short h, b; byte s, n, c, i = 0, ok;
  do
  :: i < ROUNDS ->
     get(s);
     own(s);
     atomic { owner[s] = 0; back[n_back] = s; n_back++ }; /* done; the dump thread's from here */
     s = 0; i++
  :: else -> break
  od;
  finished++
}

proctype dump() {
  short h; byte s, ok;
  do
  :: atomic { n_back > 0 -> n_back--; s = back[n_back]; back[n_back] = 0; assert(owner[s] == 0) };
     do
     :: h = head;
        next[s] = SLOT(h);
        CAS_HEAD(h, s | (TAG(h) << 4), ok);
        if :: ok -> break :: else fi
     od;
     s = 0
  :: n_back == 0 && finished == 2 -> break
  od;
  /* Every slot is in one place: free list, or fresh. */
  byte seen = 0, steps = 0;
  s = SLOT(head);
  do
  :: s != 0 -> assert(steps < SLOTS); steps++; seen++; s = next[s]
  :: else -> break
  od;
  assert(seen + TAG(bump) == FIRST + STEP * installed);
  assert(arena_taken == installed + arena_given)
}

init { atomic { run starter(); run starter(); run dump() } }
