//! How good the answers of a search are, by what people judged.

use std::collections::{BTreeMap, BTreeSet};

const NDCG_AT: usize = 10;
const RECALL_AT: usize = 100;
const FEW: usize = 10;

/// The means over all questions that have something relevant, each from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Evaluation {
    /// How many questions there were.
    pub questions: usize,
    /// The normalised discounted cumulative gain of the first ten answers.
    pub ndcg_at_10: f64,
    /// The share of what is relevant that is among the first ten answers.
    pub recall_at_10: f64,
    /// The share of what is relevant that is among the first hundred answers.
    pub recall_at_100: f64,
    /// The mean reciprocal rank: 1 if the first answer is relevant, 1/2 if only the second one is, and so on up to the hundredth.
    pub reciprocal_rank: f64,
}

/// Compares answers, the best first, with judgements: for each question, what is relevant and how much. A gain of 0 is not relevant. An
/// answer that is given again does not count, and a question without answers counts as a bad one.
pub fn evaluate<Q: Ord, D: Ord>(
    answers: &BTreeMap<Q, Vec<D>>,
    judgements: &BTreeMap<Q, BTreeMap<D, u32>>,
) -> Evaluation {
    let mut sum = Evaluation::default();
    for (question, judged) in judgements {
        let mut gains: Vec<u32> = judged.values().copied().filter(|gain| *gain > 0).collect();
        if gains.is_empty() {
            continue;
        }
        gains.sort_unstable_by(|left, right| right.cmp(left));
        let mut seen = BTreeSet::new();
        let given = answers.get(question).map(Vec::as_slice).unwrap_or_default();
        let given: Vec<u32> = given
            .iter()
            .filter(|answer| seen.insert(*answer))
            .take(RECALL_AT)
            .map(|answer| judged.get(answer).copied().unwrap_or_default())
            .collect();
        let found = |first: usize| given.iter().take(first).filter(|gain| **gain > 0).count() as f64;
        sum.questions += 1;
        sum.ndcg_at_10 += discounted(&given) / discounted(&gains);
        sum.recall_at_10 += found(FEW) / gains.len() as f64;
        sum.recall_at_100 += found(RECALL_AT) / gains.len() as f64;
        let first = given.iter().position(|gain| *gain > 0);
        sum.reciprocal_rank += first.map_or(0.0, |place| 1.0 / (place + 1) as f64);
    }
    let mean = |sum: f64, questions: usize| if questions == 0 { 0.0 } else { sum / questions as f64 };
    Evaluation {
        questions: sum.questions,
        ndcg_at_10: mean(sum.ndcg_at_10, sum.questions),
        recall_at_10: mean(sum.recall_at_10, sum.questions),
        recall_at_100: mean(sum.recall_at_100, sum.questions),
        reciprocal_rank: mean(sum.reciprocal_rank, sum.questions),
    }
}

/// The sum of gains, each divided by the logarithm of its place.
fn discounted(gains: &[u32]) -> f64 {
    gains.iter().take(NDCG_AT).zip(2_u32..).map(|(gain, place)| f64::from(*gain) / f64::from(place).log2()).sum()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(answers: &[(&str, &[u32])], judgements: &[(&str, &[(u32, u32)])], expected: &Expect) {
        let answers = answers.iter().map(|(question, given)| (*question, given.to_vec())).collect();
        let judgements =
            judgements.iter().map(|(question, judged)| (*question, judged.iter().copied().collect())).collect();
        let Evaluation { questions, ndcg_at_10, recall_at_100, .. } = evaluate(&answers, &judgements);
        expected.assert_eq(&format!("{questions} questions, {ndcg_at_10:.3}, {recall_at_100:.3}"));
    }

    #[test]
    fn answers_are_compared_with_judgements() {
        check(&[("a", &[1, 2])], &[("a", &[(1, 1), (2, 1)])], &expect!["1 questions, 1.000, 1.000"]);
        check(&[("a", &[3, 1])], &[("a", &[(1, 1), (2, 1)])], &expect!["1 questions, 0.387, 0.500"]);
        check(&[("a", &[1, 2])], &[("a", &[(1, 1), (2, 3)])], &expect!["1 questions, 0.797, 1.000"]);
        check(&[("a", &[1, 1, 1])], &[("a", &[(1, 1), (2, 1)])], &expect!["1 questions, 0.613, 0.500"]);
        check(
            &[("b", &[1])],
            &[("a", &[(1, 1)]), ("b", &[(1, 1)]), ("c", &[(1, 0)])],
            &expect!["2 questions, 0.500, 0.500"],
        );
        check(&[], &[], &expect!["0 questions, 0.000, 0.000"]);
        let many: Vec<u32> = (0..200).collect();
        check(&[("a", &many)], &[("a", &[(10, 1), (99, 1), (100, 1)])], &expect!["1 questions, 0.000, 0.667"]);
    }

    #[test]
    fn the_first_answers_count_apart() {
        let answers = [("a", vec![9, 1, 2]), ("b", (0..30).collect()), ("c", Vec::new())];
        let judged = |relevant: &[u32]| relevant.iter().map(|document| (*document, 1)).collect::<BTreeMap<_, _>>();
        let judgements = [("a", judged(&[1, 2])), ("b", judged(&[3, 19])), ("c", judged(&[1]))];
        let Evaluation { recall_at_10, recall_at_100, reciprocal_rank, .. } =
            evaluate(&answers.into(), &judgements.into());
        // Of a, all are among the first ten, the best at place 2; of b one, at place 4; of c none.
        expect!["0.500 0.667 0.250"].assert_eq(&format!("{recall_at_10:.3} {recall_at_100:.3} {reciprocal_rank:.3}"));
    }
}
