//! The metrics that Pallas has as well, under its names, for dashboards and alerts that exist.

/// The families of Pallas, without a prefix.
const FAMILIES: [&str; 8] = [
    "up",
    "agent_info",
    "send_message",
    "send_message_duration_seconds",
    "llm_turns",
    "llm_tokens",
    "agent_health_status",
    "agent_loop_aborted",
];

/// A scrape with these families a second time, under the prefix `pallas_`.
pub fn with_pallas_names(scrape: &str) -> String {
    let (lines, end) = match scrape.strip_suffix("# EOF\n") {
        Some(lines) => (lines, "# EOF\n"),
        None => (scrape, ""),
    };
    let mut text = lines.to_owned();
    let mut inside = false;
    for line in lines.lines() {
        if let Some(described) = line.strip_prefix("# ") {
            // `HELP name text`, `TYPE name kind`, `UNIT name unit`.
            let name = described.split(' ').nth(1).unwrap_or_default();
            inside = name.strip_prefix("atlas_").is_some_and(|name| FAMILIES.contains(&name));
        }
        if inside {
            text.push_str(&line.replacen("atlas_", "pallas_", 1));
            text.push('\n');
        }
    }
    text + end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::tests::with_series;

    #[test]
    fn the_families_of_pallas_are_there_twice() {
        let text = with_pallas_names(&with_series().render());
        for family in FAMILIES {
            assert!(text.contains(&format!("# TYPE pallas_{family} ")), "{family} is missing from\n{text}");
        }
        assert!(text.contains("\npallas_send_message_total{agent=\"summarize\",outcome=\"ok\"} 0\n"), "{text}");
        assert!(!text.contains("pallas_job"), "{text}");
        assert!(text.ends_with("# EOF\n") && text.matches("# EOF").count() == 1);
    }
}
