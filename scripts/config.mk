# Asks once a build folder what the compiler and the installed libraries can do, and keeps the answers in $(BUILD)/config.mk.
# Asked again when the compilers or their flags are others. What the command line says (HAVE_ZSTD=, LIBDEFLATE=) goes before.
# Found by compiling against them, so that a cross compiler is asked and not the host.
#
# HAVE_ISAL HAVE_SIMDJSON HAVE_ZSTD HAVE_SNAPPY   1, or empty; a missing one switches its feature off with one line here. simdjson
#              and one of zstd and snappy nccl-inspector needs
# HAVE_SQLITE_A HAVE_SQLITE   SQLite as an archive, which costs a command nothing that does not use it, or else as a library
# HAVE_MICROHTTPD HAVE_CURL HAVE_CURSES   the same; nccl-inspector-live needs all three (exporter/cmds/live.h)
# HAVE_NGHTTP2 HAVE_GNUTLS   the same; the head and what agents send to it need both (exporter/rpc/rpc.h)
# LIBDEFLATE   1: its archive can go into the plugin, that is, holds position-independent code; libdeflate takes two thirds
#              of zlib's time (plugin/write/gz_codec.h)
# ZLIB_A       zlib's archive      OLD_LIBS  what glibc before 2.34 has beside libc      MACHINE  what the compiler makes code for
config_of := $(subst $$,,$(strip $(CC) $(CXX) $(CPPFLAGS) $(LDFLAGS)))

# One question; $(1) name, $(2) header, $(3) compiler and language, $(4) libraries, $(5) what is said when it is missing.
ask = $(Q)if printf '\043include <$(2)>\nint main(void){return 0;}\n' | $(3) - -o /dev/null $(4) $(CPPFLAGS) $(LDFLAGS) >/dev/null 2>&1; \
  then echo '$(1) := 1'; else echo '$(1) :='; $(if $(5),echo '$(2) is missing: $(5)' >&2;) fi >>$@.new

$(BUILD)/config.mk: scripts/config.mk
	$(call say,CONFIG,$@)
	$(Q)mkdir -p $(@D) && echo 'answers_for := $(subst ','\'',$(config_of))' >$@.new
	$(call ask,HAVE_ISAL,isa-l/igzip_lib.h,$(CC) -x c,-lisal,nccl-inspector reads .gz with zlib$(comma) slower (libisal-dev; then make clean))
	$(call ask,HAVE_SIMDJSON,simdjson.h,$(CXX) -std=c++17 -x c++,-lsimdjson)
	$(call ask,HAVE_ZSTD,zstd.h,$(CC) -x c,-lzstd,nccl-inspector writes Parquet with snappy$(comma) a quarter larger (libzstd-dev; then make clean))
	$(call ask,HAVE_SNAPPY,snappy-c.h,$(CC) -x c,-lsnappy,nccl-inspector writes no Parquet with snappy (libsnappy-dev; then make clean))
	$(call ask,HAVE_SQLITE_A,sqlite3.h,$(CC) -x c,-l:libsqlite3.a -lm -ldl -lpthread)
	$(call ask,HAVE_SQLITE,sqlite3.h,$(CC) -x c,-lsqlite3,nccl-inspector imports no Nsight Systems reports (libsqlite3-dev; then make clean))
	$(call ask,HAVE_MICROHTTPD,microhttpd.h,$(CC) -x c,-lmicrohttpd,nccl-inspector has no agent$(comma) top$(comma) head and sessions (libmicrohttpd-dev; then make clean))
	$(call ask,HAVE_CURL,curl/curl.h,$(CC) -x c,-lcurl,nccl-inspector has no agent$(comma) top$(comma) head and sessions (libcurl4-gnutls-dev; then make clean))
	$(call ask,HAVE_CURSES,curses.h,$(CC) -x c,-lncursesw -ltinfo,nccl-inspector has no agent$(comma) top$(comma) head and sessions (libncurses-dev; then make clean))
	$(call ask,HAVE_NGHTTP2,nghttp2/nghttp2.h,$(CC) -x c,-lnghttp2,the head takes no gRPC$(comma) and agents send nothing to it (libnghttp2-dev; then make clean))
	$(call ask,HAVE_GNUTLS,gnutls/gnutls.h,$(CC) -x c,-lgnutls,the head takes no gRPC$(comma) and agents send nothing to it (libgnutls28-dev; then make clean))
	$(call ask,LIBDEFLATE,libdeflate.h,$(CC) -x c,-shared -fPIC -Wl$(comma)--whole-archive -l:libdeflate.a -Wl$(comma)--no-whole-archive,the plugin compresses with zlib$(comma) slower (libdeflate-dev; then make clean))
	$(Q)echo "ZLIB_A ?= $$($(CC) -print-file-name=libz.a)" >>$@.new
	$(Q)echo "OLD_LIBS :=$$(for l in libpthread.so.0 libdl.so.2; do case $$($(CC) -print-file-name=$$l) in /*) printf ' -l:%s' $$l ;; esac; done)" >>$@.new
	$(Q)echo "MACHINE := $$($(CC) -dumpmachine)" >>$@.new
	$(Q)mv $@.new $@

# Goals that compile nothing in this folder ask nothing.
no_config := help clean dist lint format uninstall asan asan-fuzzers ubsan tsan gcc-asan fuzz gpu-portable \
  check-asan check-gcc check-tsan check-fuzz check-mutation check-model check-aarch64
ifneq ($(filter-out $(no_config),$(or $(MAKECMDGOALS),all)),)
include $(BUILD)/config.mk
# MAKE_RESTARTS: once in a make, whatever came out.
ifeq ($(MAKE_RESTARTS),)
ifneq ($(answers_for),$(config_of))
$(BUILD)/config.mk: ask_again
endif
endif
endif
.PHONY: ask_again
