# Targets that run things: checks, build variants with sanitizers, fuzzers, benchmarks, lint.
#
# A variant is a whole build in a folder of its own, so that variants never mix:
#   make check-tsan      builds build-tsan and runs the tests marked for it there
.PHONY: torture check check-loop check-plain check-asan check-gcc check-tsan case_tools asan_tests tsan_tests gcc-asan gcc_units check-fuzz check-mutation check-model check-aarch64 asan asan-fuzzers ubsan tsan fuzz \
        bench verdicts hangs lint format

check: tests
	$(Q)BUILD=$(BUILD) test/runner.sh

# Races need repetition: the threaded tests until stopped, or LOOPS times.
LOOPS ?= 20
check-loop: tests
	$(Q)for i in $$(seq $(LOOPS)); do BUILD=$(BUILD) test/runner.sh sim || exit 1; done

# check.sh runs each test where it sees most, so that it stays within its time; check-long.sh runs all on the plain build, and those of
# ASAN_MEANING under AddressSanitizer as well.
# ASAN_SKIP: programs that are not ours (browser, foreign readers), the verifier's own test, and loads that other cases repeat.
# ASAN_MEANING: what figures and sentences say, by hundreds of runs of code that other cases take through the sanitizer.
# PLAIN_ONLY: those; the cases that ask for the variant, because they say or measure less under a sanitizer; and a few that
# see the code as it is shipped: all unit tests, the format, the simulator's matrix.
ASAN_SKIP ?= mpi_same|mpi_owners|index_opens|head_load|python_|head_gswarm|head_job|agent_prometheus|agent_flood|agent_unit|agent_sums|agent_hang|dashboards|top_prometheus|trace_perfetto|hang_forged|parquet_foreign|parquet_volume|report_|summary_foreign|convert_utils|plugin_symbols|build_|load_burst|life_many|load_rotation|sim_load|sim_traps|sim_verify|test_render|test_plot|gpu_check|gpu_validate|gpu_nccl_wheels|slurm_|pods_agent|helm_chart|plugin_silent
ASAN_MEANING ?= trace_index|index_hang|index_same|counters_verdicts|counters_cassini|counters_states|counters_beside|summary_findings|summary_incidents|summary_undecided|summary_series|verdicts_rules|verdicts_jobs|verdicts_second|verdicts_oracle|verdicts_invariance|diff_runs|hang_planted|merge_borders|trace_pairs|cli_help|terminal
# SANITIZER_SHARE: empty: all other tests run under AddressSanitizer alone. N: one in N of them does, another one with each commit, and the
# rest on the plain build, where they take a third of the time.
SANITIZER_SHARE ?=
# With a share also: what takes most CPU of all (`dearest` of the runner), 7 s and more: one in two, the others with the next commit. What
# verdicts say (summary_findings, summary_truth, verdicts_rules, hang_endings, hang_planted) runs each time.
BY_TURNS ?= attack_recover build_install build_packages counters_beside counters_cassini counters_hostile counters_record \
  counters_verdicts fault_box fault_disk fault_kill fault_memory fault_nth gpu_nccl_wheels hang_forged hang_ras head_auth head_gswarm \
  head_job_page helm_chart life_exit life_many load_burst load_rotation pods_agent python_net_prof python_schemas_live report_browser \
  trace_index trace_perfetto verdicts_symmetric
turns = $(if $(SANITIZER_SHARE),^($(subst $() ,|,$(strip $(BY_TURNS))))$$)
asan_skip := $(subst $() ,|,$(strip $(ASAN_SKIP) $(ASAN_MEANING)))
ask_variant = $(basename $(notdir $(shell grep -lE '\$$VARIANT|own_init|skip_under|NI_VARIANT' test/cases/*/*.sh)))
PLAIN_ONLY ?= $(asan_skip)|^(test_.*|.*_format_doc|exp_golden|sim_matrix|$(subst $() ,|,$(ask_variant)))$$
TSAN_UNITS := test_core test_judge test_channels test_slot_pool test_op_state test_log test_clock test_two_summaries test_gpu
TSAN_ONLY ?= ^($(subst $() ,|,$(TSAN_UNITS))|sim_.*|life_finalize|life_exit|load_live|hostile_handles|summary_truth)$$
# clang's, where it is there: the same objects go into the fuzzers, which want its counters of edges. Without it gcc's.
# Asked once, and only by whoever builds with it.
ASAN_CLANG = $(eval ASAN_CLANG := $(shell printf 'int LLVMFuzzerTestOneInput(const char *d, long n) { return 0; }' | clang -w -fsanitize=fuzzer,address -x c - -o /dev/null 2>/dev/null && echo 1))$(ASAN_CLANG)
# The runtime as a library of its own, as gcc has it: what is preloaded comes before it and can make its calls fail.
ASAN_RUNTIME = $(if $(ASAN_CLANG),$(shell clang -print-file-name=libclang_rt.asan-$$(uname -m).so))
ASAN_FLAGS = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer $(if $(ASAN_CLANG), \
  -fsanitize-coverage=inline-8bit-counters$(comma)pc-table -D__SANITIZE_ADDRESS__=1 -Wno-format-nonliteral \
  -shared-libasan -Wl$(comma)-rpath$(comma)$(dir $(ASAN_RUNTIME)) -Wno-unused-command-line-argument)
# Nine tenths of a second of clang's time went into optimizing what the sanitizers had added to a source of 300 lines: without that it
# takes a fifth, and the sanitizers see no less. Only where programs spend their time (HOT_ROOMS) it is worth its price.
asan_variant = $(variant) OPT_COLD="-O0 -g1 $(DEBUG)" BUILD=build-asan $(if $(ASAN_CLANG),CC=clang CXX=clang++) SAN="$(ASAN_FLAGS)"
# gcc's, of what reads foreign bytes and of the plugin, by the unit tests that link those rooms alone: the shipped programs are gcc's, and
# what it makes of undefined behaviour is not clang's. 146 sources. Its warnings of texts that are cut are errors there;
# findings.c and durations/, which make sentences of bounded length, are compiled for these. GCC_WHOLE=1: all sources; check-long.sh does so.
GCC_ROOMS := exporter/base exporter/collect exporter/input exporter/model/who exporter/model/ledger exporter/index
GCC_UNITS := test_line_reader test_parse_lines test_parse_record test_safe_text test_seq_set test_discover test_map \
  test_config test_control test_log test_job test_gz_writer test_out_file test_slot_pool test_op_state
gcc_asan = $(variant) BUILD=build-gcc CC=gcc CXX=g++ WERROR="-Werror=format-truncation -Werror=format-overflow" \
  SAN="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer" \
  $(if $(GCC_WHOLE),,EXP_SRC="$(sort $(foreach r,$(GCC_ROOMS),$(wildcard $(r)/*.c $(r)/*/*.c)))" EXP_CXX="$(sort $(foreach r,$(GCC_ROOMS),$(wildcard $(r)/*.cc $(r)/*/*.cc)))")
TSAN_FLAGS := -fsanitize=thread -Wno-tsan -fno-omit-frame-pointer
# A variant's report page is the plain build's. -g1: what a sanitizer's report names.
DEBUG  := -DNI_DEBUG -DNI_STRESS
variant = OPT="-O1 -g1 $(DEBUG)" REPORT_DIR=$(REPORT_DIR)
case_tools: all $(TPLUG_SO) $(HOST_BIN) $(PRELOAD_SO) $(NVML_SO) $(MASK_SO) $(AGENT_BIN)
tsan_tests: case_tools $(addprefix $(BUILD)/test/unit/,$(TSAN_UNITS))
asan ubsan:
	$(Q)$(MAKE) $(asan_variant) $(if $(SANITIZER_SHARE),asan_tests,tests)
gcc_units: $(addprefix $(BUILD)/test/unit/,$(GCC_UNITS)) $(BUILD)/obj/exporter/model/sums/findings.o \
  $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard exporter/model/sums/durations/*.c))
gcc-asan:
	$(Q)$(MAKE) $(gcc_asan) $(if $(GCC_WHOLE),tests,gcc_units)
asan-fuzzers:
	$(Q)$(MAKE) $(asan_variant) fuzzers
tsan:
	$(Q)$(MAKE) $(variant) BUILD=build-tsan SAN="$(TSAN_FLAGS)" tsan_tests
# BESIDE: whose tests run at the same time, asan's or tsan's. With a share what they do not run runs here.
BESIDE ?= asan
not_there = $(if $(SANITIZER_SHARE),$(if $(filter tsan,$(BESIDE)),NI_NOT_THERE='$(TSAN_ONLY)',NI_NOT_DRAWN=$(SANITIZER_SHARE)))
check-plain: tests
	$(Q)BUILD=$(BUILD) NI_ONLY='$(PLAIN_ONLY)' $(not_there) NI_TURNS='$(turns)' NI_ROW_SHARE=$(if $(SANITIZER_SHARE),4) test/runner.sh
check_asan = BUILD=build-asan NI_VARIANT=asan NI_SKIP='$(asan_skip)' NI_DRAWN=$(SANITIZER_SHARE) NI_TURNS='$(turns)'
# With a share only those unit tests are built that this commit draws, or that a case runs.
ifneq ($(filter asan_tests,$(MAKECMDGOALS)),)
asan_tests: tools all $(filter $(addprefix %/,$(shell $(check_asan) NI_LIST=1 test/runner.sh; grep -ohE '\btest_[a-z_]+' test/cases/*/*.sh)),$(UNIT_BIN))
endif
check-asan: asan
	$(Q)$(check_asan) test/runner.sh
check-gcc: gcc-asan
	$(Q)BUILD=build-gcc NI_VARIANT=asan NI_ONLY='$(or $(GCC_ONLY),^($(subst $() ,|,$(GCC_UNITS)))$$)' test/runner.sh
check-tsan: tsan
	$(Q)BUILD=build-tsan NI_VARIANT=tsan NI_ONLY='$(TSAN_ONLY)' NI_SKIP=sim_verify test/runner.sh

# The long forms of the fault suite (test/fault): KILLS=1000 rounds of SIGKILL and recover, and more; about an hour.
torture: tests
	$(Q)BUILD=$(BUILD) test/fault/torture.sh

check-fuzz:
	$(Q)FUZZ_BUILD=build-asan test/fuzz/run.sh 3
fuzz:
	$(Q)test/fuzz/run.sh 600
check-mutation:
	$(Q)test/mutation/run.sh
check-model:
	$(Q)test/model/run.sh
check-aarch64:
	$(Q)test/aarch64/run.sh

# What summary says of jobs with planted causes (docs/verdicts.md): 40 of each kind and layout, a fourth as many with weather, as
# many of each kind of the second model. An hour or more on two idle cores; time goes with VERDICTS_PER.
VERDICTS_PER ?= 40
VERDICTS_RUN = $(Q)test/verdicts/run.py held --exporter $(EXP_BIN) --tool $(JOBS_BIN) --write docs/verdicts.md
verdicts: $(EXP_BIN) $(JOBS_BIN)
	$(VERDICTS_RUN) --per $(VERDICTS_PER)
	$(VERDICTS_RUN) --per $$((($(VERDICTS_PER) + 3) / 4)) --set weather-held
	$(VERDICTS_RUN) --per $(VERDICTS_PER) --second

# What hang says of made-up endings, healthy and quiet jobs (docs/hang.md): all kinds, and 500 jobs without a hang.
HANGS_QUIET ?= 500
hangs: $(EXP_BIN)
	$(Q)test/hangs/score.py --exporter $(EXP_BIN) --quiet-jobs $(HANGS_QUIET) --write docs/hang.md

bench: all tools
	$(Q)BUILD=$(BUILD) test/bench/run.sh

lint:
	$(Q)scripts/lint.sh
format:
	$(Q)scripts/format.sh

help:
	@echo 'make             the plugin, nccl-inspector and nccl-sim in $(BUILD)/'
	@echo 'make check       all tests on this build; check-plain those that check.sh runs here; check-loop the threaded ones (LOOPS=20)'
	@echo 'make asan tsan   whole builds with sanitizers; check-asan, check-tsan run the tests on them; check-gcc: parsers by the other compiler'
	@echo 'make fuzz        ten minutes of each fuzzer; check-fuzz ten seconds'
	@echo 'make torture     kills, full disks, many communicators, a compressed day; about an hour (KILLS=1000)'
	@echo 'make check-mutation check-model check-aarch64'
	@echo 'make gpu-portable  what scripts/gpu_validate.sh needs, in build-gpu/ with its libraries, to be copied to a machine with a GPU'
	@echo 'make verdicts    whom summary names in jobs with planted causes, into docs/verdicts.md; long (VERDICTS_PER=40)'
	@echo 'make gate        instructions of callbacks, dump and commands against test/gate/table; make gate-accept writes it'
	@echo 'make hangs       what hang says of made-up endings and healthy jobs, into docs/hang.md (HANGS_QUIET=500)'
	@echo 'make bench       cost of callbacks, memory, dump thread; RIVAL_SO=path compares another plugin'
	@echo 'make install uninstall  all that users need (packaging/install.sh)   PREFIX=$(PREFIX) DESTDIR=$(DESTDIR)'
	@echo 'make dist        the packages of a release from the last commit, in $(BUILD)/dist (DIST_ARCHS="$(DIST_ARCHS)")'
	@echo 'make lint format clean'

include test/bench_exporter.mk
