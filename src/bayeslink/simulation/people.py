"""Synthetic people: embedded names, a law of frequencies, a grammar for the rare, households.

The lists were written down from general knowledge, roughly in order of commonness; no table of
frequencies was copied. Frequencies follow the Zipf–Mandelbrot law by rank, 1 / (rank + q)^s.
Past the end of a list a rank is spelt by a small grammar of syllables, so that the number of
distinct names keeps growing with the number of people, as it does in real populations.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

# Given names by the era in which they were most often given. Underscore stands for a space.
FEMALE_OLD = """
Mary Margaret Elizabeth Dorothy Helen Ruth Patricia Joan Barbara Betty Jean Shirley Joyce Doris
Florence Rose Alice Irene Frances Evelyn Marjorie Kathleen Edith Ethel Gladys Lillian Mildred
Phyllis Beryl Hilda Winifred Marion Agnes Ida Edna Eileen Maureen Bridget Nora Elsie Muriel Vera
Audrey June Sheila Brenda Pamela Beverley Norma Marie Theresa Josephine Rita Carmela Concetta
Giovanna Angelina Carmen Dolores Pilar Mercedes Consuelo Rosario Guadalupe Juana Josefa Wanda
Stanisława Jadwiga Helena Zofia Halina Kamala Lakshmi Savitri Sarojini Shanti Xiuying Guiying Yulan
Fatima Khadija Zainab Aminah Lien Hoa Ngoc Abena Akosua Ngozi Isobel Morag Mhairi Una Sinéad
Constance Mabel Pearl Thelma Lucille Bernice Geraldine Gwendoline Olwen
"""
FEMALE_MID = """
Susan Linda Karen Lisa Deborah Sandra Donna Michelle Jennifer Nicole Julie Christine Jacqueline
Catherine Angela Sharon Tracey Amanda Kimberly Melissa Heather Rebecca Rachel Nicola Alison Helene
Jane Anne Carol Diane Janet Judith Cheryl Denise Gail Wendy Lorraine Teresa Paula Andrea Kelly
Samantha Stephanie Victoria Claire Joanne Louise Sarah Dawn Tina Tammy Robin Lori Leanne Fiona
Kirsty Shona Siobhan Aoife Niamh Deirdre Gráinne Maria Ana Rosa Silvia Patrizia Antonella Paola
Daniela Francesca Monica Claudia Lucía Beatriz Raquel Montserrat Ewa Małgorzata Agnieszka Katarzyna
Joanna Sunita Anita Rekha Meena Kavita Geeta Wei Mei Ling Xiaoling Hong Li Layla Samira Nadia Huda
Thuy Lan Huong Amina Chioma Thandiwe
"""
FEMALE_NEW = """
Emma Olivia Sophia Isabella Charlotte Amelia Mia Ava Emily Grace Chloe Ella Lily Jessica Hannah
Abigail Madison Zoe Lucy Ruby Freya Isla Evie Poppy Daisy Matilda Sienna Harper Aria Scarlett Layne
Aubrey Savannah Brooklyn Paige Jasmine Caitlin Megan Erin Molly Holly Georgia Imogen Phoebe Eliza
Willow Ivy Hazel Violet Nora-Rose Maya Leah Alexis Kayla Taylor Morgan Jordan Sydney Skye Eilidh
Orla Saoirse Ciara Clodagh Sofía Valentina Camila Martina Giulia Chiara Aurora Alessia Ginevra Alba
Julia Maja Zuzanna Oliwia Priya Ananya Aanya Diya Isha Saanvi Yuxuan Zihan Yichen Xinyi Jiayi Aisha
Maryam Noor Yasmin Salma Linh Trang Mai Zara Adaeze Amara Imani Nia Zoë Anaïs
"""
MALE_OLD = """
John William George Robert Charles Thomas Arthur Albert Frederick Ernest Harold Walter Henry Edward
Frank Alfred Stanley Herbert Ronald Kenneth Donald Raymond Leonard Norman Ralph Eugene Howard
Clarence Cecil Percy Sidney Reginald Leslie Cyril Clifford Gordon Dennis Roy Eric Douglas Gerald
Bernard Francis Lawrence Vincent Victor Ivor Gwilym Hamish Angus Duncan Archibald Murdo Padraig
Cornelius Eamon Seamus Giuseppe Salvatore Antonio Domenico Carmelo Vincenzo Pasquale José Manuel
Francisco Ramón Jesús Joaquín Stanisław Kazimierz Józef Zygmunt Tadeusz Ram Mohan Krishna Gopal
Harbhajan Guoqiang Jianguo Zhiming Deming Ahmed Ibrahim Hassan Mahmoud Van_Minh Duc Kwame Kofi
Chukwuma Elmer Wilbur Earl Floyd Lester Chester Horace Hubert Ambrose Edgar
"""
MALE_MID = """
David Michael James Richard Mark Paul Stephen Steven Peter Andrew Christopher Brian Kevin Gary
Anthony Timothy Jeffrey Scott Gregory Philip Ian Alan Neil Graham Keith Colin Stuart Derek Barry
Trevor Nigel Martin Simon Jonathan Matthew Jason Craig Darren Wayne Shane Todd Chad Bradley Glenn
Russell Patrick Joseph Daniel Larry Terry Randy Bruce Roger Iain Alasdair Euan Fergus Declan
Brendan Liam Conor Niall Diarmuid Marco Roberto Stefano Massimo Fabio Juan Carlos Luis Miguel
Javier Fernando Jorge Piotr Krzysztof Andrzej Tomasz Marek Rajesh Sanjay Anil Vijay Suresh Ashok
Jun Ming Jian Feng Qiang Omar Khalid Mohammed Tariq Hung Tuan Dung Emeka Sipho Tunde Yaw Clive
"""
MALE_NEW = """
Jack Oliver Noah Joshua Ethan Lucas Benjamin Samuel Alexander Jacob Logan Mason Dylan Ryan Nathan
Luke Harry Charlie Oscar Max Leo Archie Alfie Theodore Sebastian Isaac Caleb Levi Hunter Cooper
Lachlan Riley Kai Jayden Aiden Tyler Zachary Cameron Connor Callum Finlay Rory Ewan Lewis Cian
Oisín Fionn Tadhg Cillian Adam Aaron Jude Toby Elijah Hudson Carter Wyatt Owen Gabriel Julian
Nicholas Xavier Jasper Hugo Mateo Diego Santiago Alejandro Pablo Leonardo Lorenzo Tommaso Matteo
Riccardo Edoardo Jakub Szymon Filip Antoni Arjun Aarav Rohan Vihaan Ishaan Haoran Zixuan Yuhang
Muhammad Yusuf Ali Zayd Bilal Khang Bao Minh Malik Jabari Chidi Tariku Beau Axel Brayden Kyle
"""
SURNAMES = """
Smith Jones Williams Brown Johnson Taylor Davies Wilson Miller Davis Thomas Evans White Roberts
Green Anderson Martin Walker Wright Robinson Thompson Hall Clarke Lewis Jackson Wood Harris Patel
Nguyen García Lee Moore Hughes Edwards Hill Turner King Baker Murphy Campbell Rodríguez Cooper
Clark Ward Morris Mitchell Kelly Allen Young Scott Watson Parker Cook Bennett Carter Shaw Phillips
Martínez Collins Richardson Bailey Stewart Hernández Adams Nelson Wang Singh Li Khan Ali Tran López
González Cox Marshall Simpson Price Anders Wilkinson Foster Ellis Murray O'Brien Kennedy Gray Mills
Ross McDonald Ryan Reid Graham Hunt Palmer Robertson Holmes Rogers Stevens Pérez Sánchez Zhang Chen
Liu Webb Knight Powell Butler Russell Barnes Fisher Henderson Mason Gibson Lloyd Chapman Matthews
Owen Rose Hamilton Johnston Harvey Stone Fox Pearson Jenkins Barker Dixon Hunter Fletcher Ramírez
Torres Flores Rivera Gómez Díaz Reyes Cruz Morales Ortiz Gutiérrez Hussain Ahmed Begum Mohamed
Hassan Shah Kaur Sharma Kumar Gupta Le Pham Hoang Huynh Vo Yang Huang Zhao Wu Zhou Rossi Russo
Ferrari Esposito Bianchi Romano Colombo Ricci Marino Greco Nowak Kowalski Wiśniewski Wójcik
Kowalczyk Kamiński Lewandowski Zieliński O'Connor O'Sullivan Walsh Byrne Doyle McCarthy Gallagher
Doherty Lynch Quinn Moran Daly Nolan Brennan Burke Fitzgerald Burns Duffy Farrell Hayes Hogan
MacDonald Mackenzie Fraser Cameron Ferguson Grant Paterson Morrison Duncan Kerr Sinclair Gordon
Sutherland Munro Buchanan Craig Wallace Boyd Cunningham Crawford Douglas Armstrong Elliott Bell Day
Ford West Cole Perry Long Hart Reynolds Dunn Bradley Lawrence Andrews Fields Wells Spencer Burton
Harper Nicholls Gill Payne Arnold Bates Berry Bishop Black Booth Bowen Brooks Bryant Bull Byrd
Carpenter Carr Carroll Chambers Coleman Cross Curtis Dawson Dean Dodd Drake Dyer Fleming Flynn
Francis Franklin French Frost Fuller Gardner George Gilbert Goodwin Gregory Griffin Griffiths Hale
Hammond Hancock Hansen Hardy Harrison Hawkins Hicks Higgins Hodgson Holland Holt Hopkins Horton
Houghton Howard Howarth Howell Hudson Humphreys Ingram Jacobs James Jarvis Jennings Jordan Joseph
Joyce Kay Keller Kemp Kent Kirby Kirk Lamb Lambert Lane Law Lawson Leach Little Logan Lowe Lucas
Marsh May Meyer Miles Moss Myers Naylor Newman Newton Nash Nicholson Norman Norris North Norton
Oliver Osborne Owens Parkinson Parry Parsons Peacock Pearce Peters Peterson Pickering Poole Porter
Potter Pratt Preston Pritchard Pugh Randall Read Reeves Rhodes Rice Richards Riley Rowe Sanders
Saunders Schmidt Schneider Schultz Weber Wagner Becker Hoffman Koch Sharp Shepherd Short Simmons
Skinner Slater Stephens Stevenson Stokes Storey Sullivan Summers Sutton Sykes Tanner Tate Terry
Thomson Thornton Todd Townsend Tucker Tyler Vaughan Vincent Wade Wall Walters Warner Warren Waters
Watkins Watts Weaver Webster Weston Wheeler Whitehead Wilkins Willis Winter Woods Woodward Wyatt
Yates York Álvarez Romero Ruiz Alonso Navarro Domínguez Vázquez Ramos Gil Serrano Blanco Molina
Suárez Ortega Delgado Castro Rubio Marín Sanz Núñez Iglesias Medina Garrido Cortés Castillo Santos
Lozano Guerrero Cano Prieto Méndez Calvo Gallego Vidal Cabrera Campos Vega Fuentes Carrasco Aguilar
Herrera Mendoza Chávez Rojas Salazar Silva Soto Contreras Guzmán Estrada Juárez Espinoza Valdez
Figueroa Acosta Padilla Maldonado Cervantes Trujillo Gallo Conti De_Luca Costa Giordano Mancini
Rizzo Lombardi Moretti Barbieri Fontana Santoro Mariani Rinaldi Caruso Ferrara Galli Martini Leone
Longo Gentile Martinelli Vitale Lombardo Serra Coppola De_Santis D'Angelo Marchetti Parisi Villa
Conte Ferraro Ferri Fabbri Bianco Marini Grasso Valentini Messina Sala De_Angelis Gatti Pellegrini
Palumbo Sanna Farina Rizzi Monti Cattaneo Morelli Amato Silvestri Mazza Testa Grassi Pellegrino
Carbone Giuliani Benedetti Barone Szymański Woźniak Dąbrowski Kozłowski Jankowski Mazur Kwiatkowski
Krawczyk Kaczmarek Piotrowski Grabowski Zając Pawłowski Michalski Król Wieczorek Jabłoński Wróbel
Nowakowski Majewski Olszewski Stępień Malinowski Jaworski Adamczyk Dudek Nowicki Pawlak Górski
Witkowski Walczak Sikora Baran Rutkowski Michalak Szewczyk Ostrowski Tomaszewski Zalewski Brady
Boyle Buckley Cahill Casey Clancy Cleary Coffey Connolly Conway Costello Cronin Crowley Cullen
Curran Delaney Dempsey Devlin Dillon Dolan Donnelly Donovan Dooley Duggan Egan Fahy Fallon Finnegan
Foley Geraghty Gorman Griffith Hackett Healy Hennessy Hickey Keane Kearney Keegan Kehoe Kiely
Kilgannon Lennon Lyons Madden Maguire Mahon Malone McCabe McCann McGrath McGuinness McKenna
McLoughlin McMahon McNamara Meehan Molloy Mooney Mulligan Mullen Nugent O'Callaghan O'Dea O'Donnell
O'Dwyer O'Grady O'Hara O'Keeffe O'Leary O'Mahony O'Neill O'Reilly O'Rourke O'Shea Phelan Power
Rafferty Redmond Regan Roche Rooney Scanlon Shanahan Sheehan Sheridan Tierney Tobin Tracey Twomey
Whelan Aitken Baird Barclay Blair Bruce Cairns Chisholm Christie Cowan Currie Dalgleish Donaldson
Drummond Erskine Farquhar Findlay Forbes Forsyth Galbraith Gillespie Gilmour Guthrie Haldane Innes
Irvine Jardine Kinnear Kirkpatrick Laing Leslie Lindsay Lockhart MacLean MacLeod MacMillan MacNeil
MacPherson Mair Maxwell McAllister McArthur McBride McCallum McCormack McCulloch McEwan McFarlane
McGregor McIntosh McIntyre McKay McKee McLaren McPhee McQueen Melville Menzies Moffat Montgomery
Muir Napier Ogilvie Orr Pollock Rae Ramsay Rankin Rennie Ritchie Rutherford Shand Sloan Somerville
Tait Urquhart Weir Reddy Rao Iyer Nair Menon Pillai Das Ghosh Banerjee Mukherjee Chatterjee Bose
Sen Dutta Mehta Desai Joshi Kulkarni Chopra Kapoor Malhotra Bhatia Sethi Agarwal Jain Verma Mishra
Pandey Tiwari Yadav Chaudhary Naidu Fernandes D'Souza Dhillon Sidhu Sandhu Grewal Gill-Singh Bains
Malik Iqbal Mahmood Akhtar Hussein Rahman Chowdhury Miah Uddin Islam Mirza Qureshi Siddiqui Sheikh
Butt Bhatti Xu Sun Ma Zhu Hu Guo He Lin Gao Luo Zheng Liang Xie Tang Xue Deng Feng Han Cao Peng
Zeng Xiao Tian Dong Pan Yuan Cai Jiang Yu Du Ye Cheng Wei Su Lu Ding Ren Shen Yao Wong Chan Cheung
Lam Leung Ng Lau Chow Kwok Yip Tan Lim Goh Ong Phan Vu Dang Bui Do Ngo Duong Ly Trinh Dinh Mai
Luong Truong Abdullah Haddad Khoury Nasser Saleh Mansour Hamdan Khalil Sayed Aziz Farah Najjar
Darwish Shaheen Kassem Issa Abbas Omar Ibrahim Osman Abdi Warsame Okafor Okonkwo Eze Nwosu Adeyemi
Adebayo Ogunleye Balogun Okoro Obi Mensah Owusu Boateng Asante Appiah Osei Agyeman Diallo Traoré
Keita Ndiaye Diop Mwangi Kamau Otieno Wanjiru Kariuki Moyo Ncube Dlamini Nkosi Khumalo Ndlovu
Mokoena Naidoo Govender Botha Van_der_Merwe Pretorius Coetzee Venter Tesfaye Haile Bekele
Papadopoulos Georgiou Andersen Larsen Petrov Ivanov Kim Park Choi Tanaka Sato Suzuki
"""
STREETS = """
Mill Church High Station Park Victoria Albert King Queen Manor Green Oak Elm Ash Cedar Maple Willow
Chestnut Orchard School Chapel Bridge River Hill Meadow Spring Lake Garden Grove North South East
West Market Castle Abbey Priory Windsor York Lancaster Stanley Clarence Wellington Nelson Waterloo
Alma Grange Farm Field Wood Forest Heath Moor Valley Summit Sunset Highland Washington Lincoln
Jefferson Madison Franklin Jackson Adams Monroe Cambridge Oxford Durham Kent Devon Cornwall Essex
Surrey Norfolk Hawthorn Holly Laurel Beech Birch Poplar Sycamore Rowan Juniper Lilac Heron Kestrel
Swallow Quarry Tannery Canal Dock Harbour Ferry Railway Tower Rectory Vicarage Almond Hazel
Primrose Lavender Saxon
"""
STREET_TYPES = ("Street", "Road", "Lane", "Avenue", "Drive", "Close", "Terrace", "Court")

ONSETS = """
B Bl Br C Ch Cl Cr D Dr F Fl G Gr H J K Kl Kr L M N P Pr R S Sch Sh Sk St Sw T Th Tr V W Wh Z
"""
VOWELS = "a e i o u ai ea ee ou oo"
CODAS = """
b ck d ff g l lb ld ll lm m mm mp n nd ng nn nt p r rd rk rm rn rr rt s sh st t tch th tt v x z
"""
SURNAME_ENDS = """
er man ton ley ford son ham worth field wood well bury by den stead shaw combe gate land wick ard
ins ett ell ow away mond smith berg stein feld mann ski wicz czyk ak enko ov in ez illo ero ano ini
etti ella one ucci opoulos idis akis ian oglu sen strom quist dal
"""
FEMALE_ENDS = "a ia ina elle ette ine essa ika issa ora wen lyn eth anne y isha"
MALE_ENDS = "o an en us on ric ard win ias io el ek ius ton ley esh"

N_SURNAMES, N_GIVEN = 80_000, 4_000  # ranks that exist; how many occur depends on n
SURNAME_LAW, GIVEN_LAW = (1.05, 12.0), (1.3, 12.0)  # s, q
ERA_PEAKS = (1935, 1972, 2005)
COLUMNS = ("gname", "fname", "sex", "dob", "age", "occup", "postcode", "street")
AGES, OCCUPATIONS = "abcdefgh", "123456789"
OCCUPATION_SHARES = (0.21, 0.18, 0.15, 0.13, 0.11, 0.09, 0.07, 0.05, 0.01)  # made up, skewed
HOUSEHOLD_SIZES = (0.30, 0.34, 0.15, 0.13, 0.06, 0.02)  # of 1 to 6 people
QUARTERS_SIZE = 30  # people in group quarters, on average
CENSUS_DAY = "2019-12-31"
N_POSTCODES, STREETS_PER_POSTCODE = 40_000, 40
FIRST_DECADE, N_DECADES = 1920, 10


def zipf_mandelbrot(n: int, s: float, q: float = 0.0) -> NDArray[np.float64]:
    """Probability of ranks 1 to n, proportional to 1 / (rank + q)^s."""
    weight = np.power(np.arange(1, n + 1) + q, -s)
    return np.asarray(weight / weight.sum())


def draw_ranks(
    probability: NDArray[np.float64], size: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw ranks, counted from 0, by inversion."""
    cumulative = np.cumsum(probability)
    u = rng.random(size) * cumulative[-1]
    return np.asarray(np.searchsorted(cumulative, u, side="right"))


def draw_given(
    birth_year: NDArray[np.int64], rng: np.random.Generator, eras: bool = True
) -> NDArray[np.intp]:
    """Draw a rank of given name for each person; an era's names are likelier near its peak."""
    if not eras:
        return draw_ranks(zipf_mandelbrot(N_GIVEN, *GIVEN_LAW), len(birth_year), rng)
    decade = np.clip((birth_year - FIRST_DECADE) // 10, 0, N_DECADES - 1)
    law = zipf_mandelbrot(N_GIVEN, *GIVEN_LAW)
    peak = np.resize(ERA_PEAKS, N_GIVEN)
    ranks = np.empty(len(birth_year), dtype=np.intp)
    for d in range(N_DECADES):
        who = np.flatnonzero(decade == d)
        distance = (FIRST_DECADE + 10 * d + 5 - peak) / 20
        ranks[who] = draw_ranks(law * (0.1 + np.exp(-(distance**2))), len(who), rng)
    return ranks


def _words(block: str) -> list[str]:
    return [word.replace("_", " ") for word in block.split()]


def _interleave(*eras: str) -> list[str]:
    """Rank k belongs to era k mod 3, in the lists and past their end."""
    return [name for trio in zip(*map(_words, eras), strict=True) for name in trio]


def _speller(known: list[str], *blocks: str) -> Callable[[int], str]:
    """Name by rank: from the list, then in mixed radix, so scrambled that neighbours differ."""
    syllables = [_words(block) for block in blocks]
    size = math.prod(map(len, syllables))
    step = next(k for k in range(int(size * 0.618034), size) if math.gcd(k, size) == 1)

    def spell(rank: int) -> str:
        if rank < len(known):
            return known[rank]
        number, name = (rank * step) % size, ""
        for parts in reversed(syllables):
            number, k = divmod(number, len(parts))
            name = parts[k] + name
        return name

    return spell


surname = _speller(_words(SURNAMES), ONSETS, VOWELS, CODAS, SURNAME_ENDS)
female_name = _speller(
    _interleave(FEMALE_OLD, FEMALE_MID, FEMALE_NEW), ONSETS, VOWELS, CODAS, FEMALE_ENDS
)
male_name = _speller(_interleave(MALE_OLD, MALE_MID, MALE_NEW), ONSETS, VOWELS, CODAS, MALE_ENDS)
street_names = [f"{name} {kind}" for kind in STREET_TYPES for name in _words(STREETS)]


def population(
    n: int,
    n_postcodes: int,
    households: bool,
    rng: np.random.Generator,
    *,
    eras: bool = True,
    group_quarters: float = 0.0,
) -> pa.Table:
    """Make n different people, household by household."""
    sizes = rng.choice(6, size=n, p=HOUSEHOLD_SIZES) + 1 if households else np.ones(n, np.int64)
    home = np.repeat(np.arange(n), sizes)[:n]
    first = np.searchsorted(home, home)
    position = np.arange(n) - first
    male = rng.random(n) < 0.49
    partner = position == 1
    male[partner] = ~male[np.flatnonzero(partner) - 1] ^ (rng.random(partner.sum()) < 0.03)
    dob = _birthdays(home, position, sizes, households, rng)
    year = dob.astype("datetime64[Y]").astype(np.int64) + 1970
    family = draw_ranks(zipf_mandelbrot(N_SURNAMES, *SURNAME_LAW), n, rng)
    own_name = (position > 0) & (rng.random(n) < np.where(partner, 0.2, 0.04))
    fname = np.where(own_name, family, family[first])
    given = 2 * draw_given(year, rng, eras) + male
    age = np.minimum((2019 - year) // 10, len(AGES) - 1)  # whole years on the last day of 2019
    occupation = rng.choice(len(OCCUPATIONS), size=n, p=OCCUPATION_SHARES)
    postcode, street = draw_addresses(home, n_postcodes, rng)
    if group_quarters:
        moved = _into_quarters(n, group_quarters, rng)
        postcode, street = postcode.take(moved), street.take(moved)
    columns = (
        spelt(given, lambda k: (male_name if k % 2 else female_name)(k // 2)),
        spelt(fname, surname),
        spelt(male, lambda k: "fm"[k]),
        pa.array(dob).cast(pa.string()),
        spelt(age, AGES.__getitem__),
        spelt(occupation, OCCUPATIONS.__getitem__),
        postcode,
        street,
    )
    return pa.table(dict(zip(COLUMNS, columns, strict=True)))


def _into_quarters(n: int, share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Whose address each person has: some live in homes, halls and barracks of some thirty each."""
    moved = np.arange(n)
    who = np.flatnonzero(rng.random(n) < share)
    place = rng.integers(max(1, round(len(who) / QUARTERS_SIZE)), size=len(who))
    _, first = np.unique(place, return_index=True)
    moved[who] = who[first][np.unique(place, return_inverse=True)[1]]
    return moved


def _birthdays(
    home: NDArray[np.intp],
    position: NDArray[np.intp],
    sizes: NDArray[np.int64],
    households: bool,
    rng: np.random.Generator,
) -> NDArray[np.datetime64]:
    """Draw dates of birth: a head, a partner of like age, then children 20 to 40 years younger."""
    n = len(home)
    if not households:
        years = rng.triangular(0, 30, 95, n)
    else:
        head = np.where(sizes > 2, rng.triangular(24, 38, 62, n), rng.triangular(20, 45, 95, n))
        head = head[home]
        apart = np.clip(rng.normal(0, 4, n), -12, 12)
        partner = np.maximum(head + apart, 18)
        youngest = np.maximum(head - 40, 0)
        child = youngest + rng.random(n) * (head - 20 - youngest)
        years = np.where(position == 0, head, np.where(position == 1, partner, child))
    return np.datetime64(CENSUS_DAY) - (years * 365.25).astype("timedelta64[D]")


def draw_addresses(
    home: NDArray[np.intp], n_postcodes: int, rng: np.random.Generator
) -> tuple[pa.Array, pa.Array]:
    """Draw each household a postcode, by a Zipf law, and a number in one of its streets."""
    n_homes = home[-1] + 1
    n_postcodes = min(n_postcodes, N_POSTCODES)
    codes = rng.choice(N_POSTCODES, size=n_postcodes, replace=False)
    area = draw_ranks(zipf_mandelbrot(n_postcodes, 0.8, 3.0), n_homes, rng)
    way = area * 37 + rng.integers(STREETS_PER_POSTCODE, size=n_homes)
    way %= len(street_names)
    number = rng.integers(1, 200, size=n_homes)
    street = pc.binary_join_element_wise(
        pa.array(number).cast(pa.string()), pa.array(street_names).take(way), " "
    )
    return spelt(codes[area[home]], _postcode), street.take(home)


def _postcode(k: int) -> str:
    return f"{k:04d}" if k < 10_000 else f"{k - 10_000:05d}"


def spelt(codes: NDArray[Any], name: Callable[[int], str]) -> pa.Array:
    """Text of each code, spelt once per distinct code."""
    distinct, which = np.unique(codes, return_inverse=True)
    return pa.array([name(int(k)) for k in distinct], pa.string()).take(which)
