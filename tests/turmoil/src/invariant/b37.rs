//! Damage is detected and never interpreted: a member with a damaged log does not start with it. Other invariants check
//! that the data of the other members is unaffected.

use std::collections::BTreeSet;

use super::Invariant;
use crate::oracle::Facts;
use crate::seen::Seen;

#[derive(Default)]
pub(crate) struct DamageIsFound {
    damaged: BTreeSet<usize>,
}

impl Invariant for DamageIsFound {
    fn name(&self) -> &'static str {
        "B.37 damage is found"
    }

    fn see(&mut self, seen: &Seen, facts: &mut Facts) -> Result<(), String> {
        match seen {
            Seen::Damaged { member } => {
                self.damaged.insert(*member);
                Ok(())
            }
            Seen::Replaced { member } => {
                self.damaged.remove(member);
                Ok(())
            }
            Seen::NoStart { member, error } if self.damaged.contains(member) => {
                facts.coverage.count("damage found");
                if error.contains("damaged") {
                    Ok(())
                } else {
                    Err(format!("c{} has a damaged log and does not say so: {error}", member + 1))
                }
            }
            Seen::Up { member, .. } if self.damaged.contains(member) => {
                Err(format!("c{} started on a damaged log", member + 1))
            }
            _ => Ok(()),
        }
    }
}
