//! Chance that a seed decides.

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone)]
pub struct Dice {
    state: u64,
    turns: u64,
}

impl Dice {
    /// A stream of its own for each part of a run.
    pub fn new(seed: u64, part: u64) -> Self {
        let mut dice = Self { state: seed ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15), turns: 0 };
        dice.next();
        dice
    }

    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From zero to `limit` without it.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    pub fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    /// Counts from zero.
    pub fn turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns - 1
    }

    pub fn millis(&mut self, from: u64, to: u64) -> std::time::Duration {
        std::time::Duration::from_millis(from + self.below(to - from + 1))
    }
}
