//! What became of the records of each lane: every one is written or dropped, and counted where that happens.

use std::collections::VecDeque;

use dflash_timeline::record::{LaneId, LaneTotals, Totals};

use crate::LaneAccount;

/// Whose records: a lane's, by the place of its account, or [`Source::NOBODY`]'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source(u32);

impl Source {
    /// Counters, marks, the profiler itself.
    pub(crate) const NOBODY: Self = Self(0);
}

/// The accounts of a stream.
#[derive(Debug)]
pub(crate) struct Accounts {
    accounts: Vec<Account>,
    /// Whose the records are that were handed to the stream and do not stand in a written block yet, in order.
    under_way: VecDeque<(Source, u64)>,
    /// Records in written blocks, as the stream says.
    settled: u64,
}

#[derive(Debug, Default)]
struct Account {
    lane: Option<(LaneId, String, String)>,
    /// Records made, as the lane's thread counts them, and those that its full ring dropped. A lane that was made
    /// several times: all of them together.
    emitted: u64,
    ring_dropped: u64,
    written: u64,
    /// Records that the stream took and lost, or did not take any more.
    failed: u64,
    /// Records made after the end.
    late: u64,
}

impl Default for Accounts {
    fn default() -> Self {
        Self { accounts: vec![Account::default()], under_way: VecDeque::new(), settled: 0 }
    }
}

impl Accounts {
    /// The account of a lane.
    pub(crate) fn lane(&mut self, id: LaneId, name: &str, device: &str) -> Source {
        let known = |account: &Account| account.lane.as_ref().is_some_and(|(_, n, d)| n == name && d == device);
        let place = self.accounts.iter().position(known).unwrap_or_else(|| {
            let lane = Some((id, name.to_owned(), device.to_owned()));
            self.accounts.push(Account { lane, ..Account::default() });
            self.accounts.len() - 1
        });
        Source(place as u32)
    }

    /// What the makers of records say so far: begins anew with [`forget_made`](Self::forget_made).
    pub(crate) fn made(&mut self, source: Source, emitted: u64, dropped: u64) {
        let account = self.of(source);
        account.emitted += emitted;
        account.ring_dropped += dropped;
    }

    pub(crate) fn forget_made(&mut self) {
        self.accounts.iter_mut().for_each(|account| (account.emitted, account.ring_dropped) = (0, 0));
    }

    /// A record was handed to the stream, which now has `written` in its blocks.
    #[inline]
    pub(crate) fn taken(&mut self, source: Source, written: u64) {
        match self.under_way.back_mut() {
            Some((last, count)) if *last == source => *count += 1,
            _ => self.under_way.push_back((source, 1)),
        }
        if written > self.settled {
            self.settle(written);
        }
    }

    /// The stream has so many records in written blocks.
    pub(crate) fn settle(&mut self, written: u64) {
        let mut more = written.saturating_sub(self.settled);
        self.settled = written;
        while more > 0
            && let Some((source, count)) = self.under_way.front_mut()
        {
            let part = more.min(*count);
            let source = *source;
            more -= part;
            *count -= part;
            if *count == 0 {
                self.under_way.pop_front();
            }
            self.of(source).written += part;
        }
    }

    /// A record came after the stream had failed.
    #[inline]
    pub(crate) fn refused(&mut self, source: Source) {
        self.of(source).failed += 1;
    }

    /// The stream has failed: what was under way is lost.
    pub(crate) fn fail(&mut self) {
        for (source, count) in std::mem::take(&mut self.under_way) {
            self.of(source).failed += count;
        }
    }

    /// Everything that is under way counts as written (the END block was), and what was made after the end as dropped.
    pub(crate) fn close(&mut self) {
        for (source, count) in std::mem::take(&mut self.under_way) {
            self.of(source).written += count;
        }
        self.accounts.iter_mut().for_each(Account::close);
    }

    /// Emitted and dropped over all accounts, counted where that happened; `written` with what is under way.
    pub(crate) fn totals(&self) -> Totals {
        let under_way: u64 = self.under_way.iter().map(|(_, count)| count).sum();
        let sum = |of: fn(&Account) -> u64| self.accounts.iter().map(of).sum::<u64>();
        Totals {
            emitted: sum(|a| a.emitted),
            written: sum(|a| a.written) + under_way,
            dropped: sum(Account::dropped),
            ..Totals::default()
        }
    }

    /// As they would be if the stream ended well now: what is neither written nor dropped came too late.
    pub(crate) fn lanes_at_end(&self) -> Vec<LaneTotals> {
        let mut written: Vec<u64> = self.accounts.iter().map(|account| account.written).collect();
        self.under_way.iter().for_each(|(source, count)| written[source.0 as usize] += count);
        let totals = |(account, written): (&Account, u64)| {
            let dropped = account.emitted.saturating_sub(written);
            account.lane.as_ref().map(|lane| LaneTotals { lane: lane.0, emitted: account.emitted, written, dropped })
        };
        self.accounts.iter().zip(written).filter_map(totals).collect()
    }

    /// So far: what is under way is neither written nor dropped.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = LaneTotals> {
        self.accounts.iter().filter_map(|account| {
            let (emitted, dropped) = (account.emitted, account.dropped());
            account.lane.as_ref().map(|lane| LaneTotals { lane: lane.0, emitted, written: account.written, dropped })
        })
    }

    /// For the program to look at.
    pub(crate) fn report(&self) -> Vec<LaneAccount> {
        let report = |account: &Account| {
            let (_, lane, device) = account.lane.clone()?;
            let Account { emitted, written, late, .. } = *account;
            Some(LaneAccount { lane, device, emitted, written, dropped: account.dropped(), late })
        };
        self.accounts.iter().filter_map(report).collect()
    }

    fn of(&mut self, source: Source) -> &mut Account {
        &mut self.accounts[source.0 as usize]
    }
}

impl Account {
    fn dropped(&self) -> u64 {
        self.ring_dropped + self.failed + self.late
    }

    fn close(&mut self) {
        // A lane that goes on after the end.
        self.late = self.emitted.saturating_sub(self.written + self.dropped());
    }
}

#[cfg(test)]
mod tests {
    use dflash_timeline::record::LaneId;

    use super::{Accounts, Source};

    #[test]
    fn a_block_that_fails_is_dropped_on_the_accounts_of_those_in_it() {
        let mut accounts = Accounts::default();
        let (a, b) = (accounts.lane(LaneId(0), "a", "cpu"), accounts.lane(LaneId(1), "b", "cpu"));
        assert_eq!(accounts.lane(LaneId(0), "a", "cpu"), a);
        for source in [a, a, b, a, Source::NOBODY] {
            accounts.taken(source, 0);
        }
        accounts.settle(3);
        accounts.taken(b, 3);
        accounts.fail();
        accounts.refused(b);
        accounts.made(a, 4, 1);
        accounts.made(b, 3, 0);
        accounts.made(Source::NOBODY, 1, 0);
        let lanes: Vec<_> = accounts.lanes().map(|l| (l.emitted, l.written, l.dropped)).collect();
        assert_eq!(lanes, [(4, 2, 2), (3, 1, 2)]);
        let totals = accounts.totals();
        assert_eq!((totals.emitted, totals.written, totals.dropped), (8, 3, 5));
    }

    #[test]
    fn what_comes_after_the_end_is_dropped() {
        let mut accounts = Accounts::default();
        let a = accounts.lane(LaneId(0), "a", "cpu");
        accounts.taken(a, 0);
        accounts.made(a, 3, 1);
        let end = accounts.lanes_at_end()[0];
        accounts.close();
        let report = &accounts.report()[0];
        assert_eq!((report.emitted, report.written, report.dropped, report.late), (3, 1, 2, 1));
        assert_eq!((end.emitted, end.written, end.dropped), (3, 1, 2));
    }
}
