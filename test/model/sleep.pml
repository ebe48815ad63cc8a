/*
 * Interval 0 (publish_done in callbacks_in.h, rest in dump_thread.c): a push wakes the dump thread only if that has published
 * that it sleeps. Dekker's pattern: bit set, then `sleeping` read; `sleeping` set, then bit read. Each thread has a store
 * buffer of one entry, as x86 and aarch64 have; a sequentially consistent access empties it first.
 *
 * The futex: the sleeper sleeps only while the wake word is what it was before it looked for work.
 * Checked: the dump thread never sleeps for good while something is on the list.
 * Broken on purpose:  -DRELAXED_PUSH   the bit is set with release only: it may still be in the buffer at the load
 *                     -DRELAXED_SLEEP  the same for `sleeping`
 *                     -DLOOK_FIRST     the bit is looked at before `sleeping` is set
 *                     -DNO_WORD        the futex compares nothing: a wake between look and sleep is lost
 */
#define OPS 2
bit dirty = 0, sleeping = 0;
bit push_buffered = 0, sleep_buffered = 0; /* a store that has not reached memory */
byte wake_word = 0, list = 0, pushed = 0;
bit asleep = 0;

proctype memory() { /* buffers empty themselves at any time */
end:
  do
  :: atomic { push_buffered -> dirty = 1; push_buffered = 0 }
  :: atomic { sleep_buffered -> sleeping = 1; sleep_buffered = 0 }
  od
}

proctype pusher() {
  byte i = 0; bit first, wake;
  do
  :: i < OPS ->
     atomic { first = (list == 0); list++ };
     if
     :: first ->
#ifdef RELAXED_PUSH
        push_buffered = 1;
#else
        dirty = 1;
#endif
        if
        :: sleeping -> atomic { wake = sleeping; sleeping = 0 };
           if :: wake -> wake_word++; if :: asleep -> asleep = 0 :: else fi :: else fi
        :: else
        fi
     :: else
     fi;
     i++
  :: else -> break
  od;
  pushed = OPS
}

proctype dump() {
  byte seen; bit found;
  do
  :: seen = wake_word;
     if :: dirty -> dirty = 0; list = 0 :: else fi;
     /* rest: */
#ifdef LOOK_FIRST
     found = dirty;
     sleeping = 1;
#else
#ifdef RELAXED_SLEEP
     sleep_buffered = 1;
#else
     sleeping = 1;
#endif
     found = dirty;
#endif
     if
     :: found
     :: else ->
#ifdef NO_WORD
        asleep = 1;
#else
        atomic { if :: wake_word == seen -> asleep = 1 :: else fi };
#endif
        /* Asleep for good, were there no timer: everything pushed, every buffer empty, and nobody will wake it. */
        do
        :: !asleep -> break
        :: asleep && pushed == OPS && !push_buffered && !sleep_buffered -> assert(list == 0); goto over
        od
     fi;
     sleeping = 0; sleep_buffered = 0
  od;
over: skip
}

init { atomic { run pusher(); run dump(); run memory() } }
