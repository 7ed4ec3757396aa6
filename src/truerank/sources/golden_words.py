"""What columns are called: the words of their names in English, and the names that each role has."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from typing import Final
from unicodedata import combining

_WORDS: Final = re.compile(r"[A-Za-z][a-z]+|[A-Z]+(?![a-z])|[a-z]+|\d+")


def words_of(name: str) -> tuple[str, ...]:
    """The words of a column's name in English, as far as they are known, in small letters."""
    plain = name if name.isascii() else "".join(c for c in unicodedata.normalize("NFKD", name) if not combining(c))
    words = (word.lower() for word in _WORDS.findall(plain))
    return tuple(_ENGLISH.get(word, word) for word in words)


#: What columns are called in German, French and Spanish.
_ENGLISH: Final = {
    word: english
    for english, words in {
        "query": "suchanfrage suchanfragen anfrage anfragen suchbegriff suchtext requete requetes consulta consultas",
        "question": "frage fragen pregunta preguntas pergunta perguntas domanda domande",
        "expected": "erwartet erwartete erwarteter erwartetes erwarteten attendu attendue attendus attendues esperado "
        "esperada esperados esperadas atteso attesa attesi attese",
        "retrieved": "gefunden gefundene gefundenes abgerufen recupere recuperes recuperee recuperees trouve trouves "
        "recuperado recuperada recuperados recuperadas encontrado encontrados",
        "results": "treffer ergebnis ergebnisse resultat resultate resultats resultado resultados trefferliste",
        "document": "dokument documento",
        "documents": "dokumente dokumenten documentos",
        "relevance": "relevanz pertinence relevancia",
        "relevant": "relevante relevantes relevanti pertinent pertinents",
        "rank": "rang platz puesto posicion",
        "system": "systeme sistema suchsystem verfahren moteur motor",
        "article": "artikel articulo",
        "model": "modell modele modelo",
        "answer": "antwort reponse respuesta resposta risposta",
        "answers": "antworten reponses respuestas respostas risposte",
        "source": "quelle fuente",
        "sources": "quellen fuentes",
        "score": "punktzahl puntuacion",
        "count": "anzahl cantidad",
    }.items()
    for word in words.split()
}


def joined(name: str) -> str:
    return "_".join(words_of(name))


def says(name: str, known: Collection[str]) -> bool:
    """Whether one of the words of a column's name is among some."""
    return any(word in known for word in words_of(name))


def called(names: Iterable[str], known: frozenset[str]) -> list[str]:
    """The columns that are called so, or, where none is, those whose name ends so behind a dot: input.question."""
    every = list(names)
    whole = [name for name in every if joined(name) in known]
    return whole or [name for name in every if "." in name and joined(name.rpartition(".")[2]) in known]


QUESTION: Final = frozenset(
    "question query prompt input user_input search_query utterance text query_text question_text user_query q "
    "user_question search search_term inputs_question inputs_query inputs_input".split()
)
ID: Final = frozenset(
    "id qid query_id question_id topic_id topic item item_id example_id sample_id case case_id dataset_item_id row_id "
    "uuid number nr "
    "no index idx unnamed_0 task task_id search_query_id user_query_id question_no query_no question_number".split()
)
SYSTEM: Final = frozenset(
    "system model provider run retriever engine config configuration experiment pipeline method system_id "
    "system_name model_id model_name run_id run_name variant arm approach strategy backend config_name method_name "
    "approach_name retriever_name".split()
)
DOCUMENT: Final = frozenset(
    "doc_id docid document document_id doc docno chunk_id passage_id result_id retrieved_id retrieved_doc "
    "retrieved_doc_id corpus_id article".split()
)
RANK: Final = frozenset("rank position place doc_position doc_rank result_rank".split())
GRADE: Final = frozenset(
    "relevance grade rel is_relevant judgment judgement gain relevance_judgment relevance_judgement relevance_grade "
    "relevance_label human_relevance".split()
)
LABEL: Final = frozenset("relevant label judged".split())
#: Of these the lower is better, unless a name says that they are turned already, or avoided.
LOWER: Final = frozenset(
    "rank ranks latency cost costs time seconds ms error errors distance loss losses tokens price perplexity ppl "
    "toxicity toxic harmful incorrect wrong hallucination hallucinations hallucinated bias miss misses failure "
    "failures failed wer cer mae mse rmse nll fpr fnr".split()
)
_TURNED: Final = frozenset(
    "free no non without recip reciprocal inverse inverted saved savings reduction avoided avoidance prevention "
    "resistance recovery detection handling correlation biased efficiency effectiveness".split()
)
#: Parts of names of times and ranks in some languages, and units behind a sign.
_TIME: Final = re.compile(
    r"latenc|durat|runtime|elapsed|zeit|dauer|tiempo|temps|second|sekund|\brang\b|puesto|[_ (](ms|secs?)\)?$|^ms_",
    re.IGNORECASE,
)
#: A letter that may stand for seconds.
SECONDS: Final = re.compile(r"[_ (]s\)?$", re.IGNORECASE)
#: What numbers of results are called of which each has a score of its own.
CUTOFFS: Final = frozenset("k depth cutoff cutoffs cut top".split())
#: Measures of programs that judge answers and contexts, such as Ragas and DeepEval.
RAG_MEASURE: Final = re.compile(
    r"faithfulness|groundedness|answer_(relevancy|relevance|correctness|similarity)|semantic_similarity|"
    r"context(ual)?_(precision|recall|relevancy|relevance|entity_recall)|factual_correctness|hallucination"
)
_RECIPROCAL: Final = re.compile(r"(mean_)?recip(rocal)?_rank")
_AT: Final = re.compile(r"[_ ]at[_ ](?=\d)", re.IGNORECASE)
#: Parts of a test set, in each of which a question may have the same name.
PARTS: Final = frozenset(
    "domain dataset datasets corpus collection language languages lang locale customer client tenant country "
    "region".split()
)
#: What rows are called that hold means of many questions.
GROUPS: Final = PARTS | frozenset(
    "k depth cutoff cutoffs cut epoch epochs fold folds split splits step steps iteration date day week month quarter "
    "year hour time timestamp version release build commit category categories type types class classes kind group "
    "groups bucket segment data benchmark subset difficulty threshold alpha beta temperature seed size team budget "
    "measure metric run runs trial attempt rep replicate experiment annotator rater assessor participant user".split()
)
REPEAT: Final = frozenset(
    "repeat repetition replicate trial seed iteration rep attempt epoch repeat_id trial_id run_index".split()
)
NAMED_MEASURE: Final = frozenset("measure metric metric_name measure_name".split())
SCORE: Final = frozenset("score value metric_value result".split())
SCORES: Final = frozenset("score scores similarity similarities distance distances cosine".split())
WANTED: Final = frozenset(
    "expected acceptable gold golden relevant positive positives target targets truth correct".split()
)
NOTES: Final = frozenset(
    "tag tags topic topics category categories keyword keywords note notes comment comments reason reasons reasoning "
    "rationale explanation justification feedback critique remark remarks".split()
)
REFERENCE: Final = frozenset("reference references ground".split())
ANSWER: Final = frozenset("answer answers response".split())
GENERATED: Final = frozenset("generated predicted actual output outputs completion".split())
THING: Final = frozenset(
    "id ids doc docs document documents chunk chunks passage passages context contexts url urls file files source "
    "sources page pages node nodes".split()
)
RETRIEVED: Final = frozenset(
    "retrieved retrieval results result hits ranking ranked predicted predictions returned found candidates topk top "
    "search".split()
)
#: Columns of places are called so: hit1, rank_2.
PLACES: Final = frozenset("hit rank place position match".split())
#: Words in the name of a model that labels.
MODELS: Final = frozenset(
    "judge model llm gpt chatgpt claude gemini llama mistral qwen ai auto automatic machine".split()
)
MEASURE: Final = re.compile(
    r"(n?dcg|recall|precision|mrr|rr|map|ap|hit(?:_?rate)?|success|f1|accuracy|acc|em|rouge|bleu|latency|"
    r"cost|kappa|agreement)(?:[@_ ]?\d+|@all)?|[rp]@\d+",
    re.IGNORECASE,
)


def is_count(name: str) -> bool:
    """Whether a name says that its numbers count something: n_gold, num_relevant, gold_count."""
    words = words_of(name)
    first = words[:1] in (("n",), ("num",)) or words[:2] == ("number", "of") or name.startswith("#")
    return first or not {"count", "counts", "calls", "retries"}.isdisjoint(words)


def lower_is_better(name: str) -> bool:
    """Whether a name says that lower values are better: a time, a cost, a rank, an error."""
    words = set(words_of(name))
    if words & _TURNED or measure_in(name) not in ("", "hit", "latency", "cost", "hallucination"):
        return False
    return bool(words & LOWER) or _TIME.search(name) is not None


def parts_of(name: str) -> list[str]:
    """The parts of a column's name, of which a measure with its cut-off is one: recall_at_3."""
    return re.split(r"[\s_\-./:]+(?=\D)", _AT.sub("@", name))


def measure_in(name: str) -> str:
    """The measure that a column's name ends or begins with; empty for none."""
    judged = RAG_MEASURE.search(joined(name)) or _RECIPROCAL.search(joined(name))
    return judged[0] if judged else next((part.lower() for part in parts_of(name) if MEASURE.fullmatch(part)), "")


def is_measure(name: str) -> bool:
    """Whether a column's name is that of a measure or says score, and nothing else: it names no system."""
    called_so = RAG_MEASURE.fullmatch(joined(name)) or _RECIPROCAL.fullmatch(joined(name)) or joined(name) in SCORE
    return bool(called_so) or MEASURE.fullmatch(_AT.sub("@", name)) is not None
