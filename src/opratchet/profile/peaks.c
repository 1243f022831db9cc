/* What one core of this machine can do at best: copy bandwidth by working-set size, and the
 * multiply-add rate in float32.
 *
 * Usage: peaks BYTES...     (working-set sizes: source and destination together)
 * Prints {"flops": GFLOP/s, "copy": [[bytes, GB/s], ...]}; 1 GB is 1e9 bytes.
 *
 * A rate is the best of several short repetitions: whatever else runs on the machine can only make
 * a repetition slower. Bytes count as STREAM counts them: each byte read once, each byte written
 * once, nothing for lines that the cache fetches before it overwrites them.
 *
 * Valid C and valid C++, with the vector extensions of GCC and Clang.
 */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define ACCUMULATORS 20
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#define ACCUMULATORS 12 /* 16 registers: 12 sums, 2 constants */
#elif defined(__SSE__)
#define VECTOR_BYTES 16
#define ACCUMULATORS 12
#else
#define VECTOR_BYTES 16 /* NEON and the like: 32 registers */
#define ACCUMULATORS 20
#endif

#define LANES ((int)(VECTOR_BYTES / sizeof(float)))
#define REPETITION_SECONDS 0.0002 /* shorter than a time slice, so that some run undisturbed */
#define SECONDS 0.08              /* spent on each rate */
#define FEWEST 5                  /* repetitions, where one takes long */

typedef float vec __attribute__((vector_size(VECTOR_BYTES)));

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Chains that do not depend on one another, enough of them to hide the latency of a multiply-add.
 * The sums tend to a fixed point, so that no value grows, vanishes or becomes denormal. */
static void multiply_add(long steps, vec *sums, vec factor, vec term) {
  vec s[ACCUMULATORS];
  for (int i = 0; i < ACCUMULATORS; ++i) s[i] = sums[i];
  for (long step = 0; step < steps; ++step) {
#pragma GCC unroll 32
    for (int i = 0; i < ACCUMULATORS; ++i) s[i] = s[i] * factor + term;
  }
  for (int i = 0; i < ACCUMULATORS; ++i) sums[i] = s[i];
}

static double gflops(void) {
  volatile float factor_seed = 0.999f, term_seed = 0.001f; /* the compiler must not know them */
  vec factor, term, sums[ACCUMULATORS];
  for (int lane = 0; lane < LANES; ++lane) {
    factor[lane] = factor_seed;
    term[lane] = term_seed;
  }
  for (int i = 0; i < ACCUMULATORS; ++i) sums[i] = term * (float)i;

  const long steps = 100000;
  const double end = now() + SECONDS;
  double best = 0.0;
  for (int repetition = 0; repetition < FEWEST || now() < end; ++repetition) {
    const double start = now();
    multiply_add(steps, sums, factor, term);
    const double rate = 2.0 * LANES * ACCUMULATORS * (double)steps / (now() - start) * 1e-9;
    if (rate > best) best = rate;
  }
  volatile float sink = 0.0f; /* the sums are used, so they are computed */
  for (int i = 0; i < ACCUMULATORS; ++i) sink = sink + sums[i][0];
  return best;
}

/* Ordinary loads and stores, as the kernels make them: no streaming stores, no string moves. */
static void copy(vec *to, const vec *from, size_t count) {
  for (size_t i = 0; i < count; i += 4) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) to[i + j] = from[i + j];
    __asm__ volatile(""); /* keeps the loop a loop: no call of memcpy */
  }
}

static double copy_many(vec *to, const vec *from, size_t count, long passes) {
  const double start = now();
  for (long pass = 0; pass < passes; ++pass) {
    copy(to, from, count);
    __asm__ volatile("" : : "r"(to), "r"(from) : "memory");
  }
  return now() - start;
}

static double copy_gb_per_second(size_t working_set) {
  const size_t count = working_set / 2 / sizeof(vec) / 4 * 4;
  const size_t bytes = count * sizeof(vec);
  void *from = NULL, *to = NULL;
  if (count == 0 || posix_memalign(&from, 4096, bytes) || posix_memalign(&to, 4096, bytes)) exit(1);
  memset(from, 1, bytes);
  memset(to, 2, bytes);

  const double once = copy_many((vec *)to, (const vec *)from, count, 1);
  const long passes = once > REPETITION_SECONDS ? 1 : 1 + (long)(REPETITION_SECONDS / (once + 1e-9));
  const double end = now() + SECONDS;
  double best = 0.0;
  for (int repetition = 0; repetition < FEWEST || now() < end; ++repetition) {
    const double seconds = copy_many((vec *)to, (const vec *)from, count, passes);
    const double rate = 2.0 * (double)bytes * (double)passes / seconds * 1e-9;
    if (rate > best) best = rate;
  }
  free(from);
  free(to);
  return best;
}

int main(int argc, char **argv) {
  gflops(); /* wakes the core up: clocks rise under load */
  printf("{\"flops\": %.3f, \"copy\": [", gflops());
  for (int i = 1; i < argc; ++i) {
    const size_t bytes = (size_t)strtoull(argv[i], NULL, 10);
    printf("%s[%zu, %.3f]", i > 1 ? ", " : "", bytes, copy_gb_per_second(bytes));
  }
  printf("]}\n");
  return 0;
}
