# The fuzzers, for clang; test/fuzz/run.sh builds them in a folder of their own and runs them.
FUZZ_SRC := $(filter-out $(if $(SQLITE_LIB),,%/fuzz_nsys.c) $(if $(LIVE_BIN),,%/fuzz_serve.c) $(if $(HAVE_RPC),,%/fuzz_rpc.c),$(sort $(wildcard test/fuzz/fuzz_*.c)))
FUZZ_BIN := $(FUZZ_SRC:test/fuzz/fuzz_%.c=$(BUILD)/fuzz/%)
.PHONY: fuzzers
fuzzers: $(FUZZ_BIN)
$(BUILD)/obj/test/fuzz/%.o: VERSION_FLAGS = $(EXP_FLAGS) -Wno-missing-prototypes
$(BUILD)/fuzz/now: $(BUILD)/obj/exporter/agent/top/read_now.o $(BUILD)/obj/exporter/agent/top/rows.o
$(BUILD)/fuzz/%: $(BUILD)/obj/test/fuzz/fuzz_%.o $(BUILD)/libplugin_test.a $(EXP_LIB) $(FORMAT_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CXX) -fsanitize=fuzzer,address,undefined -o $@ $(filter %.o,$^) $(filter %.a,$^) $(EXP_LIBS) $(more_libs) $(CODEC_A) $(LDFLAGS)
$(BUILD)/fuzz/spool: $(BUILD)/obj/exporter/agent/spool.o
$(BUILD)/fuzz/serve: $(addprefix $(BUILD)/obj/exporter/,http/http.o http/refuse.o rpc/none.o)
$(BUILD)/fuzz/serve: more_libs = -lmicrohttpd
$(BUILD)/fuzz/messages: $(BUILD)/obj/exporter/rpc/messages.o
$(BUILD)/fuzz/rpc: $(addprefix $(BUILD)/obj/exporter/rpc/,call.o conn.o rpc.o)
$(BUILD)/fuzz/rpc: more_libs = -lnghttp2 -lgnutls
