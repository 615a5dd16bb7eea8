// src/dispatch/plan_cache.cc: shards, single-flight planning, the bounded list of exact plans.
#include "dispatch/plan_cache.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dispatch/call_refusals.h"

namespace flhal {
namespace {

constexpr uint32_t kShards = 16;

struct Key {
  const uint64_t* words;
  uint32_t n_words;
  uint64_t hash;
  bool exact;
};

struct Entry {
  std::vector<uint64_t> words;
  uint64_t hash = 0;
  PlanRef plan;
  bool in_the_making = false;
  bool exact = false;
  bool listed = false;                // in Shard::exact
  uint32_t withdrawn = 0;             // routes that declined while running
  const char* withdrawn_reason = "";
};

struct Shard {
  std::mutex mutex;
  std::condition_variable made;
  std::unordered_multimap<uint64_t, std::unique_ptr<Entry>> entries;
  std::vector<Entry*> exact;          // in the order of the clock hand
  size_t hand = 0;

  Entry* find(const Key& key) {
    auto [first, last] = entries.equal_range(key.hash);
    for (; first != last; ++first) {
      Entry& e = *first->second;
      if (e.words.size() == key.n_words && std::memcmp(e.words.data(), key.words, key.n_words * 8) == 0) return &e;
    }
    return nullptr;
  }
  Entry* add(const Key& key) {
    auto entry = std::make_unique<Entry>();
    entry->words.assign(key.words, key.words + key.n_words);
    entry->hash = key.hash;
    entry->exact = key.exact;
    Entry* e = entry.get();
    entries.emplace(key.hash, std::move(entry));
    return e;
  }
  // Second chance: plans used since the hand last came by stay. Gives what must be released without the lock.
  void bound_exact(Entry* fresh, std::vector<PlanRef>* dropped) {
    if (std::exchange(fresh->listed, true)) return;
    exact.push_back(fresh);
    for (size_t looked = 0; exact.size() > kExactPlansPerShard && looked < 2 * exact.size(); ++looked) {
      hand %= exact.size();
      Entry* e = exact[hand];
      if (e == fresh || e->in_the_making || (e->plan && e->plan->used.exchange(0, std::memory_order_relaxed))) {
        ++hand;
        continue;
      }
      dropped->push_back(std::move(e->plan));
      erase(e);
    }
  }
  void erase(Entry* e) {
    if (e->listed) exact.erase(std::find(exact.begin(), exact.end(), e));
    auto [first, last] = entries.equal_range(e->hash);
    for (; first != last; ++first)
      if (first->second.get() == e) {
        entries.erase(first);
        return;
      }
  }
};

Shard& shard_of(uint64_t hash) {
  static Shard* shards = new Shard[kShards];   // never destroyed: threads may still run at exit
  return shards[(hash >> 32) % kShards];
}

struct Redirect final : Plan {
  Status run(PreparedCall&) override { return FLHAL_DECLINED; }
};

void give_key(Plan& plan, const Key& key, uint64_t stamp) {
  plan.words = std::make_unique<uint64_t[]>(key.n_words);
  std::memcpy(plan.words.get(), key.words, key.n_words * 8);
  plan.n_words = key.n_words;
  plan.hash = key.hash;
  plan.stamp = stamp;
}

// The plan of a key: a current one, or what `make` gives. Others that want the same key wait meanwhile.
template <typename Make>
Result<PlanRef> find_or_make(const Key& key, uint64_t stamp, uint32_t withdraw, const char* withdrawn_reason, Make&& make) {
  Shard& shard = shard_of(key.hash);
  PlanRef old;                                  // released without the lock
  std::vector<PlanRef> dropped;
  std::unique_lock lock(shard.mutex);
  Entry* e;
  for (;;) {
    e = shard.find(key);
    if (!e) {
      e = shard.add(key);
      break;
    }
    if (e->in_the_making) {
      shard.made.wait(lock);
      continue;                                 // the entry may be gone by now
    }
    bool current = e->plan && e->plan->stamp == stamp;
    if (!current) {
      e->withdrawn = 0;                         // another generation or other settings: every route may try again
      e->withdrawn_reason = "";
    }
    if (current && (withdraw & ~e->withdrawn) == 0) {
      e->plan->used.store(1, std::memory_order_relaxed);
      return share(e->plan.get());
    }
    break;
  }
  e->withdrawn |= withdraw;
  if (withdraw) e->withdrawn_reason = withdrawn_reason;
  e->in_the_making = true;
  uint32_t without = e->withdrawn;
  const char* why = e->withdrawn_reason;
  bool fresh = !e->plan;
  lock.unlock();

  Result<PlanRef> made = Status(FLHAL_E_INTERNAL);
  try {
    made = make(without, why);
  } catch (...) {
    lock.lock();
    e->in_the_making = false;
    if (!e->plan) shard.erase(e);
    shard.made.notify_all();
    throw;
  }
  lock.lock();
  e->in_the_making = false;
  if (made.ok()) {
    give_key(**made, key, stamp);
    old = std::move(e->plan);
    e->plan = share(made->get());
    if (key.exact) shard.bound_exact(e, &dropped);
  } else if (fresh) {
    shard.erase(e);
  }
  shard.made.notify_all();
  lock.unlock();
  return made;
}

struct ExactKey {
  uint64_t inline_words[256];
  std::unique_ptr<uint64_t[]> more;
  Key key;

  ExactKey(const PreparedCall& p, uint64_t depends_on) {
    uint64_t* words = inline_words;
    uint32_t room = p.n_words + exact_words(p);
    if (room > 256) {
      more = std::make_unique_for_overwrite<uint64_t[]>(room);
      words = more.get();
    }
    std::memcpy(words, p.words, p.n_words * 8);
    uint64_t hash = p.hash;
    uint32_t n = append_exact(p, depends_on, words + p.n_words, &hash);
    key = {words, p.n_words + n, hash, true};
  }
};

PlanRef make_redirect(const PreparedCall& p, uint64_t depends_on) {
  auto* r = new Redirect;
  r->redirect = true;
  r->depends_on = depends_on;
  r->def = p.def;
  r->device = p.device;
  return PlanRef(r);
}

// From the class key through redirects to a plan whose dependencies its key covers. `withdraw`: bits of a route that
// declined while running; the entry that has it is planned again without it.
Result<PlanRef> find_or_plan(PreparedCall& p, uint32_t withdraw, const char* withdrawn_reason) {
  uint64_t stamp = stamp_of(*p.device);
  PlanRef ready;                                 // chosen, but its key was too narrow
  uint64_t covered = 0;                          // FLHAL_DEPENDS_* that the key holds
  std::optional<ExactKey> exact;
  Key key{p.words, p.n_words, p.hash, false};
  for (;;) {
    auto make = [&](uint32_t without, const char* why) -> Result<PlanRef> {
      if (covered == 0) FLHAL_TRY(check_attributes(p));
      PlanRef plan = ready && !without ? std::move(ready) : choose_route(p, without, why);
      if ((plan->depends_on & ~covered) == 0) return plan;
      uint64_t wider = plan->depends_on | covered;
      ready = std::move(plan);
      return make_redirect(p, wider);
    };
    Result<PlanRef> found = find_or_make(key, stamp, 0, "", make);
    if (!found.ok()) return found;
    if (!(*found)->redirect && (withdraw >> (*found)->route & 1)) {
      found = find_or_make(key, stamp, withdraw, withdrawn_reason, make);
      if (!found.ok()) return found;
    }
    if (!(*found)->redirect) return found;
    covered = (*found)->depends_on;
    exact.emplace(p, covered);
    key = exact->key;
  }
}

}  // namespace

uint32_t exact_words(const PreparedCall& p) {
  uint32_t n = 1 + p.n_tensors;
  for (uint32_t i = 0; i < p.n_tensors; ++i) n += 2u * p.tensors[i].rank;
  return n;
}

uint32_t append_exact(const PreparedCall& p, uint64_t depends_on, uint64_t* words, uint64_t* hash) {
  uint64_t* w = words;
  *w++ = depends_on;
  for (uint32_t i = 0; i < p.n_tensors; ++i) {
    const flhal_tensor_v1& t = p.tensors[i];
    uint64_t bytes = t.rank * uint64_t(8);
    if ((depends_on & FLHAL_DEPENDS_SIZES) && t.rank) w = static_cast<uint64_t*>(std::memcpy(w, t.sizes, bytes)) + t.rank;
    if ((depends_on & FLHAL_DEPENDS_STRIDES) && t.rank)
      w = static_cast<uint64_t*>(std::memcpy(w, t.strides, bytes)) + t.rank;
    if ((depends_on & FLHAL_DEPENDS_ALIGN) && !(t.flags & FLHAL_TENSOR_HOST_SCALAR)) {
      uint64_t bits = device_bits(t) & 255;
      *w++ = bits & -bits;                       // the alignment itself, up to 128; 0: 256 or more
    }
  }
  uint32_t n = static_cast<uint32_t>(w - words);
  uint64_t h = *hash;
  for (uint32_t i = 0; i < n; ++i) h = mix(h, words[i]);
  *hash = h;
  return n;
}

Result<Plan*> plan_for_slowly(PreparedCall& p, ThreadState& thread) {
  uint64_t stamp = stamp_of(*p.device);
  PlanSlot& slot = thread.slots[class_slot(p.hash)];
  if (in_table(slot, p.hash, p.words, p.n_words, stamp)) {   // a redirect: the second lookup of exact plans
    ExactKey exact(p, slot.plan->depends_on);
    PlanSlot& second = thread.slots[exact_slot(exact.key.hash, p.hash)];
    if (in_table(second, exact.key.hash, exact.key.words, exact.key.n_words, stamp)) {
      second.plan->used.store(1, std::memory_order_relaxed);
      return second.plan;
    }
  }
  FLHAL_ASSIGN(PlanRef plan, find_or_plan(p, 0, ""));
  if (plan->hash != p.hash) {                    // exact: keep the redirect too, in its own slot
    PlanRef redirect = make_redirect(p, plan->words[p.n_words]);
    give_key(*redirect, Key{p.words, p.n_words, p.hash, false}, stamp);
    thread.keep(class_slot(p.hash), redirect.get());
    thread.keep(exact_slot(plan->hash, p.hash), plan.get());
  } else {
    thread.keep(class_slot(p.hash), plan.get());
  }
  return plan.get();                             // the table holds it
}

Result<Plan*> replace_withdrawn(PreparedCall& p, ThreadState& thread, Plan* plan) {
  const char* reason = interned(RouteRefusal{Reason::WITHDRAWN, ""}.text());
  FLHAL_ASSIGN(PlanRef next, find_or_plan(p, 1u << plan->route, reason));
  thread.keep(next->hash == p.hash ? class_slot(p.hash) : exact_slot(next->hash, p.hash), next.get());
  return next.get();
}

uint64_t plan_count() {
  uint64_t n = 0;
  for (uint32_t s = 0; s < kShards; ++s) {
    Shard& shard = shard_of(uint64_t(s) << 32);
    std::lock_guard lock(shard.mutex);
    n += shard.entries.size();
  }
  return n;
}

void drop_plans(Device* device) {
  for (uint32_t s = 0; s < kShards; ++s) {
    Shard& shard = shard_of(uint64_t(s) << 32);
    std::vector<PlanRef> dropped;
    std::lock_guard lock(shard.mutex);
    for (auto& [hash, e] : shard.entries)
      if (e->plan && !e->in_the_making && e->plan->device == device) dropped.push_back(std::move(e->plan));
  }
}

}  // namespace flhal
