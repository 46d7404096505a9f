// Memory for columns of values. Touching fresh memory takes as long as filling it, so some blocks are cached between
// calls.
#pragma once
#include <cstddef>
#include <mutex>
#include <new>
#include <utility>
#include <vector>
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace dropdtw {

class Workspace {
 public:
  explicit Workspace(std::size_t bytes) : block_(take(bytes)) {}
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace() { put_back(block_); }
  void* get() const { return block_.begin; }

 private:
  static constexpr std::size_t most_kept = std::size_t(1) << 28;  // bytes, all blocks together
  static constexpr std::size_t large = std::size_t(1) << 21;      // larger blocks use huge pages, where available

  struct Block {
    void* begin;
    std::size_t size;
    std::align_val_t alignment;
  };
  struct Kept {
    std::mutex mutex;
    std::vector<Block> blocks;
    std::size_t bytes = 0;
  };
  static Kept& kept() {
    static Kept& all = *new Kept;  // never destroyed: threads may outlive static objects
    return all;
  }

  // The smallest cached block that is large enough, or a new one.
  static Block take(std::size_t bytes) {
    {
      Kept& all = kept();
      const std::lock_guard lock(all.mutex);
      auto best = all.blocks.end();
      for (auto block = all.blocks.begin(); block != all.blocks.end(); ++block)
        if (block->size >= bytes && (best == all.blocks.end() || block->size < best->size)) best = block;
      if (best != all.blocks.end()) {
        const Block found = *best;
        all.blocks.erase(best);
        all.bytes -= found.size;
        return found;
      }
    }
    const std::size_t unit = bytes < large ? 64 : large, size = (bytes + unit - 1) / unit * unit;
    const std::align_val_t alignment{unit};
    void* const begin = ::operator new(size, alignment);
#ifdef MADV_HUGEPAGE
    if (unit == large) madvise(begin, size, MADV_HUGEPAGE);
#endif
    return {begin, size, alignment};
  }

  static void put_back(Block block) {
    Kept& all = kept();
    {
      const std::lock_guard lock(all.mutex);
      if (all.bytes + block.size <= most_kept && all.blocks.size() < 64) {
        all.blocks.push_back(block);
        all.bytes += block.size;
        return;
      }
    }
    ::operator delete(block.begin, block.alignment);
  }

  Block block_;
};

}  // namespace dropdtw
