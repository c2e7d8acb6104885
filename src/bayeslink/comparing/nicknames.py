"""Short, familiar and foreign forms of given names, written down from general knowledge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

# Each line: a name, then other forms that a person of that name may go by. A form may stand in
# several lines. The forms before a slash are those that `simulate` writes.
_FORMS = """
aaron ron ronnie
abigail abby gail / abbie
abraham abe bram
adam ad
adelaide addie della heidi
adrian ade
agnes aggie nessie
albert al bert / bertie
alexander alex sandy / alec sasha xander alejandro alessandro
alexandra alex sandra sandy lexi sasha
alfred alf fred / alfie freddie
alice ali alison
amanda mandy /
andrew andy drew / andreas andre andrea
angela angie / ange
ann anne anna annie nan nancy hannah
anthony tony / ant antonio anton antoine
antonia toni tonia
archibald archie /
arnold arnie
arthur art / artie
augustus gus august
barbara barb babs / barbie
barnaby barney
bartholomew bart
beatrice bea trixie
benedict ben
benjamin ben / benny
bernard bernie / bernhard
bertram bert
beverly bev
bridget biddy bridie
bradley brad /
calvin cal
cameron cam
carl karl charles
caroline carrie carol caro
catherine cathy kate katie / kitty kathleen katharine katherine kathryn cath kay katarina
cecilia cissy celia
charles charlie chuck / chas chaz carlos karl carlo
charlotte lottie charlie / lotte
christian chris
christina chris tina chrissy christine kirsten
christopher chris kit / topher cristobal
clarence clarrie
clifford cliff
clinton clint
constance connie /
cornelius con / neil
curtis curt
cynthia cindy
daniel dan danny /
david dave davy / davey
deborah debbie deb / debra
dennis den denny
diana di diane
dominic dom nick
donald don / donnie
dorothy dot dolly / dottie dora
douglas doug /
edgar ed eddie
edith edie
edmund ed ned ted
edward ed ted eddie / ned teddy eduardo
edwin ed eddie
eleanor nell ellie / nora ella lenora
elizabeth liz beth betty / eliza bess lizzie elsie libby lisa elisabeth isabel betsy elise
emily em / emmy
emma em emmie
ernest ernie ernst
esther essie hester
ethel ettie
eugene gene /
evelyn eve evie
ezekiel zeke
florence flo flossie
frances fran fanny / francie frankie
francis frank / francisco franz francesco
franklin frank
frederick fred freddie / fritz friedrich frederic rick
gabriel gabe /
gabrielle gabby
geoffrey geoff jeff jeffrey
george georgie jorge georg
georgina georgie gina
gerald gerry / jerry
geraldine gerry /
gertrude gertie trudy
gilbert gil bert
giovanni gianni john
giuseppe pino beppe / joseph
gregory greg /
gretchen greta margaret
guillermo memo william
gwendolyn gwen
harold harry hal /
harriet hattie harry
harvey harv
helen nell nellie lena elena helena ellen
henrietta hetty etta
henry harry hank / hal heinrich enrique
herbert herb bert
herman manny hermann
hilda hildegard
horace horry
howard howie
hubert bert
hugh hughie hugo
humphrey humph
ian iain john
ignatius iggy
isaac ike zac
isabella bella izzy / isabel belle isabelle
jacob jake / jakob jack
jacqueline jackie /
james jim jimmy / jamie jem jaime jas
jane janie jenny janet jean
janet jan
jason jay
jeffrey jeff /
jennifer jenny jen / jenna
jeremiah jerry jem
jeremy jem jerry
jerome jerry
jessica jess / jessie
joan joanie
joanna jo joanne
johann hans john johannes
john jack johnny jon jock juan jean johann ivan sean ian
jonathan jon / jonny nathan
joseph joe joey / jos jose josef giuseppe
josephine josie jo /
joshua josh /
joyce joy
judith judy / judi
julia julie jules
julian jules
karen kari
kenneth ken / kenny
kevin kev
kimberly kim /
kristin kris kirsten
laura laurie lori
lawrence larry / laurie lorenzo laurence lars lorenz
leonard len / lenny leo leon
leopold leo
leroy roy
leslie les
lewis lew lou louis
lillian lily / lil
linda lindy
louis lou luis ludwig luigi
louise lou lulu
lucille lucy
lucy lu luce
luke lucas
lydia liddy
madeline maddie
magdalena lena magda
malcolm mal
marcus mark marc marco
margaret maggie peggy meg / peg marge margie rita greta madge daisy maisie margarete margarita
maria mary marie mia
marjorie marge margie
martha mattie patty
martin marty /
mary molly polly / mamie may maria marie minnie
matilda tilly / mattie maud
matthew matt / mat matteo mateo
maurice morris
maximilian max
melanie mel
melissa mel missy lissa
michael mike mick / mickey mikey micky miguel michel michele mikhail
michelle shelly
mildred millie
miranda randy
mitchell mitch
moses moe
muriel mu
nancy nan
natalie nat
nathan nate / nat
nathaniel nate nat nathan
nicholas nick / nicky nico klaus niklas nicolas
nicole nicky nikki
norman norm
oliver ollie /
oscar ozzie
oswald oz ozzie
pamela pam /
patricia pat patty / tricia trish patsy
patrick pat paddy /
paul paulie pablo paolo
paula polly
penelope penny
percival percy
peter pete / pedro pietro pierre petros
philip phil / pip felipe
phyllis phyl
priscilla prissy cilla
prudence prue
rachel rae
randolph randy
raymond ray /
rebecca becky / becca
reginald reg / reggie
rhoda rho
richard rick dick / rich ricky richie dickie ricardo
robert bob rob bobby / robbie bert robin roberto
roberta bobbie
roderick rod
rodney rod
roger rodge
roland rollie
ronald ron / ronnie
rosalind ros
rose rosie rosa
rosemary rosie romy
rudolph rudi rudy rolf
rupert ru
russell russ
ruth ruthie
samantha sam / sammy
samuel sam / sammy
sandra sandy /
sarah sally sadie sara
sebastian seb / bastian
sharon shari
sheila shelly
sidney sid
sigmund sig
simon si
solomon sol
sophia sophie
stanley stan
stephanie steph / steffi
stephen steve / stevie steven stefan esteban stefano
stuart stu / stewart
susan sue susie / suzie suzanne susanna
sylvia syl
tabitha tabby
terence terry
teresa tess / terry tessa theresa
theodore theo ted / teddy
thomas tom tommy / tomas
timothy tim / timmy
tobias toby
tristan tris
ulrich uli
ursula uschi
valentine val
valerie val
vanessa nessa
veronica ronnie vera
victor vic
victoria vicky tori /
vincent vince / vinny
viola vi
violet vi
virginia ginny
vivian viv
wallace wally
walter walt / wally
wesley wes
wilfred wilf fred
wilhelmina mina minnie willa
william bill will / willy billy liam willie wilhelm guillaume guillermo wm
winifred winnie / freda
winston win
yvonne vonnie
zachary zach / zack
"""

_LINES = [line.split() for line in _FORMS.strip().split("\n")]

SIMULATED_FORMS = {line[0]: tuple(line[1 : line.index("/")]) for line in _LINES if "/" in line}


def nickname_groups(more: Iterable[Sequence[str]] = ()) -> dict[str, frozenset[str]]:
    """The groups, by number, that each name is in: the lines embedded here, and `more`."""
    lines = [[form for form in line if form != "/"] for line in _LINES]
    groups: dict[str, set[str]] = {}
    for k, line in enumerate((*lines, *more)):
        for form in line:
            groups.setdefault(form.casefold(), set()).add(str(k))
    return {form: frozenset(found) for form, found in groups.items()}
