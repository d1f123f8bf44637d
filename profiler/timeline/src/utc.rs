//! Unix time as a UTC date, for the names of run directories.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, nanoseconds since 1970.
pub(crate) fn now_unix_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(|t| i64::try_from(t.as_nanos()).ok()).unwrap_or(0)
}

/// `YYYYmmdd-HHMMSS` of a Unix time.
pub(crate) fn stamp(unix_ns: i64) -> String {
    let seconds = unix_ns.div_euclid(1_000_000_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    format!("{year:04}{month:02}{day:02}-{:02}{:02}{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// Days since 1970-01-01 as year, month, day (Howard Hinnant's `civil_from_days`).
fn civil(days: i64) -> (i64, i64, i64) {
    // Years that begin in March: the leap day is then a year's last, and 400 of them repeat exactly.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * march_month + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::stamp;

    #[test]
    fn dates_as_date_prints_them() {
        assert_eq!(stamp(0), "19700101-000000");
        assert_eq!(stamp(951_827_696_000_000_000), "20000229-123456");
        assert_eq!(stamp(1_795_996_799_999_999_999), "20261129-235959");
        assert_eq!(stamp(-1), "19691231-235959");
    }
}
